package lambda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/api/account"
	"ferry/shared/api/upload"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// TestTheRequestIDIsLoggedAtEachStage follows an ID from the gateway's event to the
// mail: the function's log, the answer, the outbox, the public event, and the logs of
// relay and email.
func TestTheRequestIDIsLoggedAtEachStage(t *testing.T) {
	t.Parallel()
	const id = "JKJaXmPLvHcESHA="
	ports := boottest.Ports(t, map[string]string{"FERRY_EVENTS": "on"})
	var cloud boottest.Cloud
	var log bytes.Buffer
	ports.Log = slog.New(slog.NewJSONHandler(&log, nil))
	f := lambda.With(ports)

	e := load(t, "upload")
	e.RequestContext.RequestID = id
	e.MultiValueQueryStringParameters["m"] = []string{"carla@example.com"}
	delete(e.MultiValueQueryStringParameters, "d")
	answer := send(t, f.Handler(upload.Upload()), ports, e)
	if got := answer.MultiValueHeaders["X-Request-Id"]; len(got) != 1 || got[0] != id {
		t.Errorf("the answer's id is %v", got)
	}
	logged(t, &log, "request", "id", id)

	var stream events.DynamoDBEvent
	var n notify.Notice
	newest(t, ports.Table, "outbox#", &n)
	stream.Records = append(stream.Records, inserted(n.Key(), n.Request, map[string]string{"channel": string(n.Channel)}))
	var p notify.RecordedEvent
	newest(t, ports.Table, notify.EventPrefix, &p)
	stream.Records = append(stream.Records, inserted(p.Key(), p.Request, map[string]string{"type": string(p.Type), "body": p.Body}))
	if n.Request != id || p.Request != id {
		t.Errorf("the notice has the request %q, the event %q", n.Request, p.Request)
	}
	log.Reset()
	_, err := worker.RelayerHandler(worker.With(ports, cloud.Providers()))(t.Context(), stream)
	apitest.Must(t, err)
	logged(t, &log, "a record was passed on", "request", id)
	for _, m := range cloud.Published[notify.EventsTopic] {
		var body struct{ RequestID string }
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil || body.RequestID != id {
			t.Errorf("the event is %s, %v", m.Body, err)
		}
	}

	log.Reset()
	for _, m := range cloud.Published[notify.NoticesTopic] {
		carry(t, ports, &cloud, m.Body)
	}
	logged(t, &log, "notice sent", "request", id)
}

// TestMetricsComeFromLinesThatAreReallyLogged makes functions log each line that is
// counted.
func TestMetricsComeFromLinesThatAreReallyLogged(t *testing.T) {
	t.Parallel()
	ports := boottest.Ports(t, nil)
	var cloud boottest.Cloud
	var log bytes.Buffer
	ports.Log = slog.New(&lambda.MetricsHandler{Handler: slog.NewJSONHandler(&log, nil), Stack: "ferry"})
	f := lambda.With(ports)

	e := load(t, "authlogin")
	e.MultiValueHeaders["authorization"] = []string{"Basic YWxpY2U6d3Jvbmc="} // alice:wrong
	answer := send(t, f.Handler(account.Login()), ports, e)
	for _, name := range []string{lambda.Requests, lambda.ClientErrors} {
		logged(t, &log, "request", name, 1.0)
	}
	logged(t, &log, "login refused", lambda.LoginsFailed, 1.0)
	logged(t, &log, "request", lambda.Bytes, float64(len(answer.Body)))

	broken := lambda.With(&api.Ports{Ports: auth.Ports{Now: ports.Now}, Settings: ports.Settings, Log: ports.Log})
	log.Reset()
	send(t, broken.Handler(account.Login()), broken.Ports, e)
	logged(t, &log, "request", lambda.ServerErrors, 1.0)

	for _, c := range []struct {
		err           error
		message, name string
	}{
		{nil, "notice sent", lambda.NoticesSent},
		{errors.New("busy"), "notice not sent yet", lambda.NoticesDelayed},
		{mail.ErrPermanent, "notice given up", lambda.NoticesFailed},
	} {
		op := notify.Notice{Kind: notify.Link, Channel: notify.Mail, To: "carla@example.com", Owner: "alice", Area: blob.Files, File: 1}.Op(ports.Now(), c.name)
		apitest.Must(t, ports.Table.Write(t.Context(), op))
		cloud.MailErr = c.err
		log.Reset()
		carry(t, ports, &cloud, notify.Pointer(op.Key, "mail").Body)
		logged(t, &log, c.message, c.name, 1.0)
		if c.name != lambda.NoticesFailed && !regexp.MustCompile(`"ageMs":\d+,.*"NoticeSeconds":`).Match(log.Bytes()) {
			t.Errorf("%s has no age: %s", c.message, &log)
		}
	}
}

// carry hands a message to the function that sends notices.
func carry(t *testing.T, p *api.Ports, cloud *boottest.Cloud, body string) {
	t.Helper()
	record := worker.CourierRecord{SQSMessage: events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: body}}
	_, err := worker.CourierHandler(worker.With(p, cloud.Providers()))(t.Context(), worker.CourierEvent{Records: []worker.CourierRecord{record}})
	apitest.Must(t, err)
}

// newest returns the newest item of the partitions with a prefix.
func newest(t *testing.T, all table.Table, prefix string, into any) {
	t.Helper()
	var found table.Item
	err := all.Scan(t.Context(), func(item table.Item) error {
		if len(item.Key.PK) > len(prefix) && item.Key.PK[:len(prefix)] == prefix && item.Key.SK > found.Key.SK {
			found = item
		}
		return nil
	})
	if err != nil || found.Decode(into) != nil {
		t.Fatalf("nothing is in %s: %v", prefix, err)
	}
}

func inserted(key table.Key, request string, image map[string]string) events.DynamoDBEventRecord {
	r := events.DynamoDBEventRecord{EventName: "INSERT"}
	r.Change.Keys = map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(key.PK), "sk": events.NewStringAttribute(key.SK)}
	r.Change.NewImage = map[string]events.DynamoDBAttributeValue{"request": events.NewStringAttribute(request)}
	for name, v := range image {
		r.Change.NewImage[name] = events.NewStringAttribute(v)
	}
	return r
}

// logged fails the test unless there are lines with this message and each has the value.
func logged(t *testing.T, log *bytes.Buffer, message, name string, want any) {
	t.Helper()
	found := false
	for line := range bytes.Lines(log.Bytes()) {
		var fields map[string]any
		apitest.Must(t, json.Unmarshal(line, &fields))
		if fields["msg"] != message {
			continue
		}
		found = true
		apitest.Equal(t, name, fields[name], want)
	}
	if !found {
		t.Errorf("there is no line %q in\n%s", message, log)
	}
}
