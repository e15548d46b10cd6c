package lambda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api/account"
	"ferry/shared/api/upload"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/service"
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
			expect.Equal(t, name+": "+metric, line[metric], any(want))
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
	expect.NoErr(t, json.Unmarshal(line, &got))
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

// TestTheRequestIDIsLoggedAtEachStage follows an ID from the gateway's event to the mail: the
// answer, the outbox, and the logs of upload and email. Those of relay are in package worker.
func TestTheRequestIDIsLoggedAtEachStage(t *testing.T) {
	t.Parallel()
	const id = "JKJaXmPLvHcESHA="
	ports, cloud, log := counted(t)
	f, e := lambda.With(ports), load(t, "upload")
	e.RequestContext.RequestID = id
	e.MultiValueQueryStringParameters["m"] = []string{"carla@example.com"}
	delete(e.MultiValueQueryStringParameters, "d")
	answer := sendTo(t, f, f.Handler(upload.Upload()), e)
	expect.Equal(t, "the answer's id", answer.MultiValueHeaders["X-Request-Id"], []string{id})
	logged(t, log, "request", "id", id)
	for n, err := range notify.Waiting(t.Context(), ports.Table) {
		expect.NoErr(t, err)
		carry(t, ports, cloud, notify.Pointer(n.Key(), "mail").Body)
	}
	logged(t, log, "notice sent", "request", id)
}

// counted returns a service whose log has metrics, and what its functions use besides.
func counted(t *testing.T) (*service.Service, *boottest.Cloud, *bytes.Buffer) {
	t.Helper()
	ports, log := boottest.Service(t, nil), new(bytes.Buffer)
	ports.Log = slog.New(&lambda.MetricsHandler{Handler: slog.NewJSONHandler(log, nil), Stack: "ferry"})
	return ports, new(boottest.Cloud), log
}

// TestMetricsComeFromLinesThatAreReallyLogged makes functions log each line that is
// counted.
func TestMetricsComeFromLinesThatAreReallyLogged(t *testing.T) {
	t.Parallel()
	ports, cloud, log := counted(t)
	f, e := lambda.With(ports), load(t, "authlogin")
	e.MultiValueHeaders["authorization"] = []string{"Basic YWxpY2U6d3Jvbmc="} // alice:wrong
	answer := sendTo(t, f, f.Handler(account.Login()), e)
	for _, name := range []string{lambda.Requests, lambda.ClientErrors} {
		logged(t, log, "request", name, 1.0)
	}
	logged(t, log, "login refused", lambda.LoginsFailed, 1.0)
	logged(t, log, "request", lambda.Bytes, float64(len(answer.Body)))

	broken := lambda.With(service.New(service.Ports{Now: ports.Now, Log: ports.Log}, ports.Settings))
	log.Reset()
	sendTo(t, broken, broken.Handler(account.Login()), e)
	logged(t, log, "request", lambda.ServerErrors, 1.0)

	for _, c := range []struct {
		err           error
		message, name string
	}{
		{nil, "notice sent", lambda.NoticesSent},
		{errors.New("busy"), "notice not sent yet", lambda.NoticesDelayed},
		{mail.ErrPermanent, "notice given up", lambda.NoticesFailed},
	} {
		op := notify.Notice{Kind: notify.Link, Channel: files.Mail, To: "carla@example.com", Owner: "alice", Area: blob.Files, File: 1}.Op(ports.Now(), c.name)
		expect.NoErr(t, ports.Table.Write(t.Context(), op))
		cloud.MailErr = c.err
		log.Reset()
		carry(t, ports, cloud, notify.Pointer(op.Key, "mail").Body)
		logged(t, log, c.message, c.name, 1.0)
		if c.name != lambda.NoticesFailed && !regexp.MustCompile(`"ageMs":\d+,.*"NoticeSeconds":`).Match(log.Bytes()) {
			t.Errorf("%s has no age: %s", c.message, log)
		}
	}
}

// carry hands a message to the function that sends notices.
func carry(t *testing.T, p *service.Service, cloud *boottest.Cloud, body string) {
	t.Helper()
	record := worker.CourierRecord{SQSMessage: events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: body}}
	_, err := worker.CourierHandler(&worker.Worker{Service: p, Providers: cloud.Providers()})(t.Context(), worker.CourierEvent{Records: []worker.CourierRecord{record}})
	expect.NoErr(t, err)
}

// logged fails the test unless there are lines with this message and each has the value.
func logged(t *testing.T, log *bytes.Buffer, message, name string, want any) {
	t.Helper()
	found := false
	for line := range bytes.Lines(log.Bytes()) {
		var fields map[string]any
		expect.NoErr(t, json.Unmarshal(line, &fields))
		if fields["msg"] != message {
			continue
		}
		found = true
		expect.Equal(t, name, fields[name], want)
	}
	if !found {
		t.Errorf("there is no line %q in\n%s", message, log)
	}
}
