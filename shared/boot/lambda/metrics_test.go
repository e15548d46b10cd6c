package lambda_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"

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

// TestEachLogLineHasItsMetrics has rows of a message, its attributes, and its metrics.
func TestEachLogLineHasItsMetrics(t *testing.T) {
	t.Parallel()
	const table = `
		request | path=/v1/upload status=200 bytes=123 | Requests=1 Bytes=123
		request | status=500 bytes=1 | Requests=1 Bytes=1 ServerErrors=1
		request | path=/v1/upload status=401 bytes=1 | Requests=1 Bytes=1 ClientErrors=1
		login refused | address=203.0.113.7 login=basic | LoginsFailed=1
		login refused | login=password | LoginsFailed=1
		login refused | login=pin | LoginsFailed=1
		login refused | login=bearer |
		notice sent | ageMs=1500 | NoticesSent=1 NoticeSeconds=1.5
		notice not sent yet | ageMs=90000 | NoticesDelayed=1 NoticeSeconds=90
		notice given up | | NoticesFailed=1
		swept | status=500 |`
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := strings.Split(row, "|")
		var attrs []any
		for _, word := range strings.Fields(cells[1]) {
			name, value, _ := strings.Cut(word, "=")
			attrs = append(attrs, name, value)
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				attrs[len(attrs)-1] = n
			}
		}
		var out bytes.Buffer
		log := slog.New(&lambda.MetricsHandler{Handler: slog.NewJSONHandler(&out, nil), Stack: "ferry"}).With("id", "1")
		log.Info(strings.TrimSpace(cells[0]), attrs...)
		var line map[string]any
		expect.NoErr(t, json.Unmarshal(out.Bytes(), &line))
		expect.Equal(t, row+": the id", line["id"], "1")
		var metrics []string
		for _, word := range strings.Fields(cells[2]) {
			name, value, _ := strings.Cut(word, "=")
			expect.Equal(t, row+": "+name, fmt.Sprint(line[name]), value)
			unit := cmp.Or(map[string]string{"Bytes": "Bytes", "NoticeSeconds": "Seconds"}[name], "Count")
			metrics = append(metrics, fmt.Sprintf(`{"Name":%q,"Unit":%q}`, name, unit))
		}
		described := regexp.MustCompile(`"Stack":"ferry","_aws":` + regexp.QuoteMeta(
			`{"CloudWatchMetrics":[{"Dimensions":[["Stack"]],"Metrics":[`+strings.Join(
				metrics,
				",",
			)+`],"Namespace":"Ferry"}],`) + `"Timestamp":1\d{12}}`)
		if described.MatchString(out.String()) != (metrics != nil) || (line["_aws"] != nil) != (metrics != nil) {
			t.Errorf("%s: the line is %s", row, &out)
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
		{message: "notice sent", name: lambda.NoticesSent},
		{err: errors.New("busy"), message: "notice not sent yet", name: lambda.NoticesDelayed},
		{err: mail.ErrPermanent, message: "notice given up", name: lambda.NoticesFailed},
	} {
		op := notify.Notice{
			Kind:    notify.Link,
			Channel: files.Mail,
			To:      "carla@example.com",
			Owner:   "alice",
			Area:    blob.Files,
			File:    1,
		}.Op(ports.Now(), c.name)
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
	_, err := worker.CourierHandler(&worker.Worker{
		Service:   p,
		Providers: cloud.Providers(),
	})(t.Context(), worker.CourierEvent{Records: []worker.CourierRecord{record}})
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
