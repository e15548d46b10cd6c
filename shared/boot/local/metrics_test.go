package local_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// measured is alice, of a service with metrics.
type measured struct {
	apitest.Caller
	metrics *local.Metrics
}

func newMeasured(t *testing.T) measured {
	s := apitest.New(t, apitest.Listening)
	s.InProcess("only ferry serve has metrics")
	metrics := local.NewMetrics(s.Data.Ports.Log)
	secrets, err := notify.ParseWebhookSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	expect.NoErr(t, err)
	alice := s.Add("alice") // before requests are measured
	s.Service, err = local.NewService(s.Data.Ports, s.Service.Settings, local.ServiceOptions{
		From: "ferry@localhost", Metrics: metrics, Webhooks: []string{"https://hooks.example.com/"}, Secrets: secrets,
	})
	expect.NoErr(t, err)
	s.HTTP.Config.Handler = s.Service.Handler()
	return measured{alice, metrics}
}

// wantValue scrapes a metric.
func (m measured) wantValue(want float64, name string, labels ...string) {
	m.Helper()
	_, f := m.scrape()
	expect.Equal(m.TB, name, value(f[name], labels...), want)
}

// scrape returns the metrics' text and what a Prometheus reads in it.
func (m measured) scrape() (string, map[string]*dto.MetricFamily) {
	m.Helper()
	w := httptest.NewRecorder()
	m.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.Body.String()))
	expect.NoErr(m.TB, err)
	return w.Body.String(), families
}

// value returns the value of the metric with these labels, in pairs.
func value(f *dto.MetricFamily, labels ...string) float64 {
	for _, m := range f.GetMetric() {
		have := map[string]string{}
		for _, l := range m.Label {
			have[l.GetName()] = l.GetValue()
		}
		same := len(have) == len(labels)/2
		for i := 0; i < len(labels); i += 2 {
			same = same && have[labels[i]] == labels[i+1]
		}
		if same {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func TestMetricsTellWhatTheServiceDoesByPrometheusConventions(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	m.Ask("PUT /upload?file=x&m=carla@example.com", "twelve bytes").Want(200)
	for i := range 20 {
		m.Ask("GET /files/1", "").Want(200)
		m.Send("GET /invented/"+strings.Repeat("x", i), "").Want(404)
		m.Send(strings.Repeat("Y", i+1)+" "+m.Root+"/", "").Want(404)
	}
	m.Send("GET /download/list", "", "Authorization", apitest.Basic("alice", "a wrong password")).Want(401)
	m.Send("GET /download/file?k=invented", "").Want(401)

	text, f := m.scrape()
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"ferry_requests_total", []string{"route", "PUT /v1/upload", "status", "200"}, 1},
		{"ferry_requests_total", []string{"route", "GET /v1/files/{id}", "status", "200"}, 20},
		{"ferry_requests_total", []string{"route", "/", "status", "404"}, 40},
		{"ferry_requests_total", []string{"route", "GET /v1/download/list", "status", "401"}, 1},
		{"ferry_received_bytes_total", []string{"route", "PUT /v1/upload"}, 12},
		{"ferry_request_duration_seconds", []string{"route", "GET /v1/files/{id}"}, 20},
		{"ferry_logins_refused_total", []string{"login", "basic"}, 1},
		{"ferry_logins_refused_total", []string{"login", "link"}, 1},
		{"ferry_logins_refused_total", []string{"login", "pin"}, 0},
		{"ferry_outbox_notices", []string{"state", "queued"}, 1},
		{"ferry_outbox_notices", []string{"state", "failed"}, 0},
		{"ferry_requests_open", []string{"route", "PUT /v1/upload"}, 0},
	} {
		expect.Equal(t, fmt.Sprint(c.name, c.labels), value(f[c.name], c.labels...), c.want)
	}
	for _, name := range []string{"ferry_disk_free_bytes", "go_goroutines", "go_memstats_heap_inuse_bytes"} {
		if value(f[name]) <= 0 {
			t.Errorf("%s is %v", name, value(f[name]))
		}
	}
	if sent := value(f["ferry_sent_bytes_total"], "route", "GET /v1/files/{id}"); sent < 20*100 {
		t.Errorf("%v bytes were sent", sent)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	expect.NoErr(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "ferry_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestMetricsShowTheAgeOfTheOldestNoticeInEachStateAndOfTheOldestEvent(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	m.Upload("file=x&m=carla@example.com", "abc")
	expect.NoErr(t, m.Service.Sender.Spread(t.Context()))
	m.Clock.Advance(90e9)
	_, f := m.scrape()
	expect.Equal(t, "events that wait", value(f["ferry_outbox_events"]), 1)
	if age := value(f["ferry_outbox_events_oldest_seconds"]); age < 90 || age > 150 {
		t.Errorf("the oldest event is %v s old", age)
	}
	for state, least := range map[string]float64{"queued": 90, "sending": 0, "failed": 0} {
		if age := value(f["ferry_outbox_oldest_seconds"], "state", state); age < least || age > least+60 {
			t.Errorf("the oldest notice that is %s is %v s old", state, age)
		}
	}
	m.Calls.Before("table.Query", func() error { return table.ErrBusy })
	if _, f := m.scrape(); f["ferry_outbox_notices"] != nil || value(f["ferry_disk_free_bytes"]) <= 0 {
		t.Error("while the table fails, either its figures are there or others are missing")
	}
}

func TestMetricsCountAnOpenUpload(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	out, in := io.Pipe()
	done := make(chan int)
	go func() {
		done <- m.Request("PUT", "/upload?file=x", out, "Authorization", "Bearer "+m.Bearer).StatusCode
	}()
	_, err := io.WriteString(in, "some") // returns when it is sent
	expect.NoErr(t, err)
	expect.Eventually(func() bool { _, f := m.scrape(); return value(f["ferry_requests_open"], "route", "PUT /v1/upload") > 0 })
	m.wantValue(1, "ferry_requests_open", "route", "PUT /v1/upload")
	in.Close()
	expect.Equal(t, "the status", <-done, 200)
	m.wantValue(0, "ferry_requests_open", "route", "PUT /v1/upload")
}

func TestMetricsCountTheOpenUploadSessionsOfAllUsers(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	bob := m.Add("bob")
	first, _ := session(m.Caller, `{"name":"x"}`)
	second, _ := session(bob, `{"name":"y","length":1}`)
	m.wantValue(2, "ferry_upload_sessions_open")
	m.Ask("DELETE "+first, "").Want(204)
	m.wantValue(1, "ferry_upload_sessions_open")
	bob.Ask("DELETE "+second, "").Want(204)
	m.wantValue(0, "ferry_upload_sessions_open")
}
