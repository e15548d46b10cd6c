package lambda

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"
)

// MetricsNamespace is that of all metrics.
const MetricsNamespace = "Ferry"

// The metrics. Their values are counts but for Bytes.
const (
	Requests       = "Requests"
	ClientErrors   = "ClientErrors" // answers with 4xx
	ServerErrors   = "ServerErrors" // answers with 5xx
	Bytes          = "Bytes"        // of answers
	LoginsFailed   = "LoginsFailed" // passwords refused, by any endpoint
	NoticesSent    = "NoticesSent"
	NoticesDelayed = "NoticesDelayed" // not sent yet, to be tried again
	NoticesFailed  = "NoticesFailed"  // given up
	NoticeSeconds  = "NoticeSeconds"  // from the making of a notice to its being sent, or tried in vain
)

// MetricsHandler is a slog.Handler that makes metrics of what is logged anyway: it
// adds to a line of another handler what CloudWatch takes for metrics (the embedded
// metric format), so that none costs a call. All have one dimension, the stack, as
// each metric of each dimension is billed by the month.
//
// The format is described at
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
type MetricsHandler struct {
	slog.Handler
	stack string
}

// NewMetricsHandler returns a MetricsHandler for the functions of one stack. It is safe for
// concurrent use if the other is.
func NewMetricsHandler(h slog.Handler, stack string) *MetricsHandler {
	return &MetricsHandler{h, stack}
}

// Handle implements slog.Handler.
func (h *MetricsHandler) Handle(ctx context.Context, r slog.Record) error {
	if values := of(r); len(values) > 0 {
		r = r.Clone()
		r.AddAttrs(values...)
		r.AddAttrs(slog.String("Stack", h.stack), slog.Any("_aws", described(values, r.Time)))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. Attributes that were added before are not
// looked at: those of metrics are given with their line.
func (h *MetricsHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &MetricsHandler{h.Handler.WithAttrs(attrs), h.stack}
}

// WithGroup implements slog.Handler. Metrics must stand at the top of a line,
// so that lines of a group have none.
func (h *MetricsHandler) WithGroup(name string) slog.Handler { return h.Handler.WithGroup(name) }

// of are the metrics of a line, by what it says.
func of(r slog.Record) []slog.Attr {
	switch r.Message {
	case "request":
		return ofRequest(r)
	case "notice sent":
		return aged(r, slog.Int64(NoticesSent, 1))
	case "notice not sent yet":
		return aged(r, slog.Int64(NoticesDelayed, 1))
	case "notice given up":
		return []slog.Attr{slog.Int64(NoticesFailed, 1)}
	}
	return nil
}

// aged adds how old the notice of a line is: the highest is the age of the outbox.
func aged(r slog.Record, count slog.Attr) []slog.Attr {
	if age, ok := attr(r, "age"); ok {
		return []slog.Attr{count, slog.Float64(NoticeSeconds, age.Duration().Seconds())}
	}
	return []slog.Attr{count}
}

func ofRequest(r slog.Record) []slog.Attr {
	status, _ := attr(r, "status")
	bytes, _ := attr(r, "bytes")
	path, _ := attr(r, "path")
	values := []slog.Attr{slog.Int64(Requests, 1), slog.Int64(Bytes, bytes.Int64())}
	switch code := status.Int64(); {
	case code >= 500:
		values = append(values, slog.Int64(ServerErrors, 1))
	case code >= 400:
		values = append(values, slog.Int64(ClientErrors, 1))
		auth, _ := attr(r, "auth")
		grant := strings.HasSuffix(path.String(), "/oauth2/token") && (code == 400 || code == 401) // its password is in the body
		if grant || code == 401 && auth.String() == "Basic" {
			values = append(values, slog.Int64(LoginsFailed, 1))
		}
	}
	return values
}

func attr(r slog.Record, name string) (v slog.Value, found bool) {
	v = slog.Int64Value(0)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == name {
			v, found = a.Value, true
		}
		return !found
	})
	return v, found
}

// described is what CloudWatch reads to take the values for metrics.
func described(values []slog.Attr, at time.Time) map[string]any {
	units := map[string]string{Bytes: "Bytes", NoticeSeconds: "Seconds"}
	var metrics []map[string]string
	for _, v := range values {
		metrics = append(metrics, map[string]string{"Name": v.Key, "Unit": cmp.Or(units[v.Key], "Count")})
	}
	return map[string]any{
		"Timestamp": at.UnixMilli(),
		"CloudWatchMetrics": []map[string]any{
			{"Namespace": MetricsNamespace, "Dimensions": [][]string{{"Stack"}}, "Metrics": metrics},
		},
	}
}
