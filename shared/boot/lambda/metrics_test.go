package lambda_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/lambda"
)

func TestEachLogLineHasItsMetrics(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string
		attrs   []any
		want    map[string]float64
	}{
		"a request":              {"request", []any{"path", "/v1/upload", "status", 200, "bytes", int64(123)}, map[string]float64{"Requests": 1, "Bytes": 123}},
		"a request that failed":  {"request", []any{"status", 500, "bytes", int64(1)}, map[string]float64{"Requests": 1, "Bytes": 1, "ServerErrors": 1}},
		"a wrong request":        {"request", []any{"path", "/v1/upload", "status", 401, "bytes", int64(1)}, map[string]float64{"Requests": 1, "Bytes": 1, "ClientErrors": 1}},
		"a refused password":     {"login refused", []any{"address", "203.0.113.7", "login", "basic"}, map[string]float64{"LoginsFailed": 1}},
		"a failed grant":         {"login refused", []any{"login", "password"}, map[string]float64{"LoginsFailed": 1}},
		"an expired bearer":      {"login refused", []any{"login", "bearer"}, nil},
		"a notice that was sent": {"notice sent", []any{"ageMs", int64(1500)}, map[string]float64{"NoticesSent": 1, "NoticeSeconds": 1.5}},
		"a notice that waits":    {"notice not sent yet", []any{"ageMs", int64(90_000)}, map[string]float64{"NoticesDelayed": 1, "NoticeSeconds": 90}},
		"a notice given up":      {"notice given up", nil, map[string]float64{"NoticesFailed": 1}},
		"anything else":          {"swept", []any{"status", 500}, nil},
	} {
		var out bytes.Buffer
		slog.New(&lambda.MetricsHandler{Handler: slog.NewJSONHandler(&out, nil), Stack: "ferry"}).With("id", "1").Info(test.message, test.attrs...)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["id"] != "1" {
			t.Fatalf("%s: the line is %s, %v", name, &out, err)
		}
		for metric, want := range test.want {
			apitest.Equal(t, name+": "+metric, line[metric], any(want))
		}
		wantDescribed(t, out.Bytes(), test.want)
	}
}

// wantDescribed reads the line as CloudWatch does.
func wantDescribed(t *testing.T, line []byte, want map[string]float64) {
	t.Helper()
	var got struct {
		Stack string
		AWS   *struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	apitest.Must(t, json.Unmarshal(line, &got))
	if want == nil {
		if got.AWS != nil {
			t.Errorf("the line has metrics: %s", line)
		}
		return
	}
	if got.AWS == nil || len(got.AWS.CloudWatchMetrics) != 1 || got.Stack != "ferry" || time.Since(time.UnixMilli(got.AWS.Timestamp)).Abs() > time.Minute {
		t.Fatalf("the line is %s", line)
	}
	d := got.AWS.CloudWatchMetrics[0]
	if d.Namespace != "Ferry" || len(d.Dimensions) != 1 || !slices.Equal(d.Dimensions[0], []string{"Stack"}) || len(d.Metrics) != len(want) {
		t.Errorf("the description is %+v", d)
	}
	for _, m := range d.Metrics {
		if _, ok := want[m.Name]; !ok || m.Unit == "" {
			t.Errorf("the metric %+v is described", m)
		}
	}
}
