package lambda

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"ferry/shared/envelope"
)

// MetricsNamespace is the namespace of all metrics.
const MetricsNamespace = "Ferry"

// The metrics. All but Bytes and NoticeSeconds are counts.
const (
	Requests       = "Requests"
	ClientErrors   = "ClientErrors" // answers with 4xx
	ServerErrors   = "ServerErrors" // answers with 5xx
	Bytes          = "Bytes"        // of answers
	LoginsFailed   = "LoginsFailed" // passwords and PINs refused, by any endpoint
	NoticesSent    = "NoticesSent"
	NoticesDelayed = "NoticesDelayed" // not sent yet, will be retried
	NoticesFailed  = "NoticesFailed"  // given up
	NoticeSeconds  = "NoticeSeconds"  // the age of a notice when it is sent, or a try fails
)

// MetricsHandler is a slog.Handler that turns what is logged anyway into metrics: it adds to a line
// what CloudWatch reads as metrics (the embedded metric format), so that no metric needs a call.
// All have one dimension, the stack, because each metric costs a monthly fee per dimension. It is
// safe for concurrent use if the wrapped handler is.
//
// The format is described at
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
type MetricsHandler struct {
	slog.Handler
	Stack string // its name
}

// Handle implements slog.Handler.
func (h *MetricsHandler) Handle(ctx context.Context, r slog.Record) error {
	if values := of(r); len(values) > 0 {
		r = r.Clone()
		r.AddAttrs(values...)
		r.AddAttrs(slog.String("Stack", h.Stack), slog.Any("_aws", described(values, r.Time)))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. The attributes that metrics need come with the
// line itself, and at its top level: lines of a group have no metrics.
func (h *MetricsHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &MetricsHandler{h.Handler.WithAttrs(attrs), h.Stack}
}

// of returns the metrics of a line, according to its message.
func of(r slog.Record) (values []slog.Attr) {
	attrs := map[string]slog.Value{}
	r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
	count := map[string]string{
		"notice sent":         NoticesSent,
		"notice not sent yet": NoticesDelayed,
		"notice given up":     NoticesFailed,
	}[r.Message]
	switch r.Message {
	case "request":
		values = append(
			values,
			slog.Int64(Requests, 1),
			slog.Int64(Bytes, attrs["bytes"].Int64()),
		)
		switch code := attrs["status"].Int64(); {
		case code >= 500:
			count = ServerErrors
		case code >= 400:
			count = ClientErrors
		}
	case envelope.LoginRefused:
		if slices.Contains([]string{"basic", "password", "pin"}, attrs["login"].String()) {
			count = LoginsFailed
		}
	}
	if count != "" {
		values = append(values, slog.Int64(count, 1))
	}
	if age, ok := attrs["ageMs"]; ok && (count == NoticesSent || count == NoticesDelayed) {
		values = append(values, slog.Float64(NoticeSeconds, float64(age.Int64())/1000)) // the highest is the outbox's age
	}
	return values
}

// described returns the metadata that makes CloudWatch read the values as metrics.
func described(values []slog.Attr, at time.Time) map[string]any {
	units := map[string]string{Bytes: "Bytes", NoticeSeconds: "Seconds"}
	var metrics []map[string]string
	for _, v := range values {
		metrics = append(metrics, map[string]string{
			"Name": v.Key,
			"Unit": cmp.Or(units[v.Key], "Count"),
		})
	}
	return map[string]any{
		"Timestamp": at.UnixMilli(),
		"CloudWatchMetrics": []map[string]any{
			{
				"Namespace":  MetricsNamespace,
				"Dimensions": [][]string{{"Stack"}},
				"Metrics":    metrics,
			},
		},
	}
}
