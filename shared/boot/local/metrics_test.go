package local_test

import (
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

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

// scrape returns the metrics as a Prometheus gets them.
func (m measured) scrape() string {
	w := httptest.NewRecorder()
	m.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// wantLines scrapes metrics. Each line of want is a metric with its value, a regular expression.
func (m measured) wantLines(want string) {
	m.Helper()
	text := m.scrape()
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (` + value + `)$`).MatchString(text) {
			m.Errorf("%s is not %s in\n%s", name, value, text)
		}
	}
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
	m.wantLines(`
		ferry_requests_total{route="PUT /v1/upload",status="200"} = 1
		ferry_requests_total{route="GET /v1/files/{id}",status="200"} = 20
		ferry_requests_total{route="/",status="404"} = 40
		ferry_requests_total{route="GET /v1/download/list",status="401"} = 1
		ferry_received_bytes_total{route="PUT /v1/upload"} = 12
		ferry_sent_bytes_total{route="GET /v1/files/{id}"} = [2-9]\d{3}|\d{5}
		ferry_request_duration_seconds_count{route="GET /v1/files/{id}"} = 20
		ferry_logins_refused_total{login="basic"} = 1
		ferry_logins_refused_total{login="link"} = 1
		ferry_logins_refused_total{login="pin"} = 0
		ferry_outbox_notices{state="queued"} = 1
		ferry_outbox_notices{state="failed"} = 0
		ferry_requests_open{route="PUT /v1/upload"} = 0
		ferry_disk_free_bytes = [1-9].*
		go_goroutines = [1-9].*
		go_memstats_heap_inuse_bytes = [1-9].*`)
	problems, err := promlint.New(strings.NewReader(m.scrape())).Lint()
	expect.NoErr(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "ferry_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestMetricsShowTheAgeOfTheOldestNoticeInEachStateAndOfTheOldestEvent: 90 s, and what is left of
// the second in which it was stored.
func TestMetricsShowTheAgeOfTheOldestNoticeInEachStateAndOfTheOldestEvent(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	m.Upload("file=x&m=carla@example.com", "abc")
	expect.NoErr(t, m.Service.Sender.Spread(t.Context()))
	m.Clock.Advance(90e9)
	m.wantLines(`
		ferry_outbox_oldest_seconds{state="queued"} = 90(\..*)?
		ferry_outbox_oldest_seconds{state="sending"} = 0
		ferry_outbox_oldest_seconds{state="failed"} = 0
		ferry_outbox_events = 1
		ferry_outbox_events_oldest_seconds = 90(\..*)?`)
	m.Calls.Before("table.Query", func() error { return table.ErrBusy })
	m.wantLines(`ferry_disk_free_bytes = [1-9].*`)
	if strings.Contains(m.scrape(), "ferry_outbox_notices") {
		t.Error("while the table fails, its figures are there")
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
	const open = `ferry_requests_open{route="PUT /v1/upload"}`
	expect.Eventually(func() bool { return strings.Contains(m.scrape(), open) })
	m.wantLines(open + " = 1")
	in.Close()
	expect.Equal(t, "the status", <-done, 200)
	m.wantLines(open + " = 0")
}

func TestMetricsCountTheOpenUploadSessionsOfAllUsers(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	bob := m.Add("bob")
	first, _ := session(m.Caller, `{"name":"x"}`)
	session(bob, `{"name":"y","length":1}`)
	m.wantLines("ferry_upload_sessions_open = 2")
	m.Ask("DELETE "+first, "").Want(204)
	m.wantLines("ferry_upload_sessions_open = 1")
}
