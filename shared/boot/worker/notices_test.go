package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

func report(t *testing.T, p *service.Service, fixture boottest.Fixture) error {
	t.Helper()
	answer, err := lambda.NewHandler(worker.FeedbackHandler(&worker.Worker{
		Service:   p,
		Providers: worker.Providers{},
	})).Invoke(t.Context(), fixture.Event)
	if err == nil {
		expect.NoErr(t, fixture.Expect.Check(answer))
	}
	return err
}

func TestABounceFailsTheNoticeAndSuppressesTheAddress(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.Now = func() time.Time { return time.UnixMilli(1759460400000) } // as in events/feedback.json
	key := p.notice("0a1b2c3d4e5f6071", files.Mail, "carla@example.com")
	fixture := boottest.Load(t, "feedback")
	if err := report(t, p.Service, fixture); err == nil {
		t.Fatal("feedback on a notice in the outbox is not retried")
	}
	p.handle(t.Context(), message("1", key))
	for range 2 {
		expect.NoErr(t, report(t, p.Service, fixture))
	}
	if n := p.stored(key); n.State() != notify.Failed || !strings.HasPrefix(n.LastError, "bounced: ") {
		t.Errorf("the notice is %s: %s", n.State(), n.LastError)
	}
	if _, ok, err := notify.Suppressed(t.Context(), p.Table, "carla@example.com"); err != nil || !ok {
		t.Errorf("the address is suppressed: %v, %v", ok, err)
	}
}

func TestTheStatusOfATextMessageIsRecordedInItsNotice(t *testing.T) {
	t.Parallel()
	p := begin(t)
	fixture := boottest.Load(t, "feedbacksms")
	expect.NoErr(t, report(t, p.Service, fixture)) // a message that is not ours
	key := p.notice("x", files.SMS, "+393331234567")
	p.handle(t.Context(), message("1", key))
	owner := struct {
		V      int64  `json:"v"`
		Notice string `json:"notice"`
	}{}
	if err := p.Table.Get(t.Context(), table.Key{PK: "provider#sms-1", SK: "provider"}, &owner); err != nil ||
		owner.Notice != key.SK {
		t.Fatalf("under the provider's id there is %+v, %v", owner, err)
	}
	// The provider of the event knows the message by another name.
	name := table.Key{PK: "provider#34d9b400-c6dd-5444-820d-fbeb0f1f54cf", SK: "provider"}
	expect.NoErr(t, p.Table.Write(t.Context(), table.Put(name, owner)))
	expect.NoErr(t, report(t, p.Service, fixture))
	if n := p.stored(key); n.State() != notify.Sent || n.Delivered == 0 {
		t.Errorf("the notice is %s, delivered %d", n.State(), n.Delivered)
	}
}

func TestAnUnreadableEventFailsSoThatItBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	h := worker.FeedbackHandler(&worker.Worker{
		Service:   boottest.Service(t, nil),
		Providers: new(boottest.Cloud).Providers(),
	})
	for _, text := range []string{`[]`, `{"Records":[{"Sns":{"Message":"hello"}}]}`, `{"awslogs":{"data":"?"}}`} {
		if err := h(t.Context(), []byte(text)); err == nil {
			t.Errorf("%s is taken for an event", text)
		}
	}
}

// relay hands the fixture's records, a notice 0 and an event 1, to relay. It returns the answer and
// the log.
func relay(t *testing.T, cloud *boottest.Cloud, change func(*events.DynamoDBEventRecord)) (answer, log string) {
	t.Helper()
	var e events.DynamoDBEvent
	boottest.Load(t, "relay").Decode(t, &e)
	for i := range e.Records {
		e.Records[i].Change.SequenceNumber = fmt.Sprint(i)
		change(&e.Records[i])
	}
	event, err := json.Marshal(e)
	expect.NoErr(t, err)
	var lines strings.Builder
	ports := service.Ports{Log: slog.New(slog.NewTextHandler(&lines, nil))}
	w := &worker.Worker{Service: service.New(ports, service.Settings{}), Providers: cloud.Providers()}
	text, err := lambda.NewHandler(worker.RelayerHandler(w)).Invoke(t.Context(), event)
	expect.NoErr(t, err)
	return string(text), lines.String()
}

func asItIs(*events.DynamoDBEventRecord) {}

func TestRecordsOfTheStreamReachTheirTopics(t *testing.T) {
	t.Parallel()
	var cloud boottest.Cloud
	answer, log := relay(t, &cloud, func(r *events.DynamoDBEventRecord) {
		r.Change.NewImage["request"] = events.NewStringAttribute("request-1")
	})
	expect.NoErr(t, boottest.Load(t, "relay").Expect.Check([]byte(answer)))
	notice, event := cloud.Published[notify.NoticesTopic], cloud.Published[notify.EventsTopic]
	if len(notice) != 1 || notice[0].Value != "mail" || strings.Contains(notice[0].Body, "carla") {
		t.Errorf("for the notice, %v was published", notice)
	}
	if len(event) != 1 || event[0].Value != "file.uploaded" || !json.Valid([]byte(event[0].Body)) {
		t.Errorf("for the event, %v was published", event)
	}
	expect.Equal(t, "lines with the request", strings.Count(log, "request=request-1"), 2)
}

func TestRecordsThatATopicDidNotAcceptComeAgain(t *testing.T) {
	t.Parallel()
	answer, _ := relay(t, &boottest.Cloud{TopicsErr: errors.New("no topic")}, asItIs)
	expect.Equal(t, "the answer", answer, `{"batchItemFailures":[{"itemIdentifier":"0"},{"itemIdentifier":"1"}]}`)
}

// TestAnEventThatItsTopicRefusesForGoodIsGivenUp: a notice comes again, because its
// message cannot be the reason for the refusal.
func TestAnEventThatItsTopicRefusesForGoodIsGivenUp(t *testing.T) {
	t.Parallel()
	answer, log := relay(t, &boottest.Cloud{TopicsErr: fmt.Errorf("%w: too long", notify.ErrRefused)}, asItIs)
	expect.Equal(t, "the answer", answer, `{"batchItemFailures":[{"itemIdentifier":"0"}]}`)
	if strings.Count(log, "level=ERROR") != 2 ||
		strings.Count(log, "given up") != 1 ||
		!strings.Contains(log, "too long") ||
		!strings.Contains(log, "event#") {
		t.Errorf("the log says %s", log)
	}
}

func TestOnlyNewItemsArePassedOn(t *testing.T) {
	t.Parallel()
	var cloud boottest.Cloud
	relay(t, &cloud, func(r *events.DynamoDBEventRecord) { r.EventName = "MODIFY" })
	if cloud.Published != nil {
		t.Errorf("%v was published", cloud.Published)
	}
}
