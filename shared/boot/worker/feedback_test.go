package worker_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/api"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/worker"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// mailed is the notice of events/feedback.json.
const mailed = "1759460400000-0a1b2c3d4e5f6071"

// put puts a notice with an ID in the outbox.
func put(t *testing.T, p *api.Ports, id string, channel notify.Channel, to string) table.Key {
	t.Helper()
	n := notify.Notice{V: 1, ID: id, Kind: notify.Link, Channel: channel, To: to, Lang: "en", Base: "https://files.example.com/v1",
		Owner: "alice", Area: "files", File: 1, Name: "a.txt", Sender: "alice", Created: p.Now().Unix()}
	check(t, p.Table.Write(t.Context(), table.Put(n.Key(), n)))
	return n.Key()
}

func send(t *testing.T, p *api.Ports, key table.Key) {
	t.Helper()
	e := queued(events.SQSMessage{MessageId: "1", Body: notify.Pointer(key, "mail").Body})
	if a, err := worker.CourierHandler(worker.With(p, new(boottest.Cloud).Providers()))(t.Context(), e); err != nil || len(a.BatchItemFailures) != 0 {
		t.Fatalf("sending: %+v, %v", a, err)
	}
}

func report(t *testing.T, p *api.Ports, fixture boottest.Fixture) error {
	t.Helper()
	answer, err := lambda.NewHandler(worker.FeedbackHandler(worker.With(p, worker.Providers{}))).Invoke(t.Context(), fixture.Event)
	if err == nil {
		fixture.Expect.Match(t, answer)
	}
	return err
}

func state(t *testing.T, p *api.Ports, id string) notify.Notice {
	t.Helper()
	found, err := notify.States(t.Context(), p.Table, []string{id})
	if err != nil || len(found) != 1 {
		t.Fatalf("the states are %v, %v", found, err)
	}
	return found[0]
}

func TestABounceFailsTheNoticeAndSuppressesTheAddress(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	key := put(t, p, mailed, notify.Mail, "carla@example.com")
	fixture := boottest.Load(t, "feedback")
	if err := report(t, p, fixture); err == nil {
		t.Fatal("feedback on a notice in the outbox is not retried")
	}
	send(t, p, key)
	for range 2 {
		check(t, report(t, p, fixture))
	}
	if n := state(t, p, mailed); n.State() != notify.Failed || !strings.HasPrefix(n.LastError, "bounced: ") {
		t.Errorf("the notice is %s: %s", n.State(), n.LastError)
	}
	if _, ok, err := notify.Suppressed(t.Context(), p.Table, "carla@example.com"); err != nil || !ok {
		t.Errorf("the address is suppressed: %v, %v", ok, err)
	}
}

func TestTheStatusOfATextMessageIsRecordedInItsNotice(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	fixture := boottest.Load(t, "feedbacksms")
	if err := report(t, p, fixture); err != nil {
		t.Fatalf("a message that is not ours: %v", err)
	}
	key := put(t, p, "1-x", notify.SMS, "+393331234567")
	send(t, p, key)
	owner := struct {
		V      int64  `json:"v"`
		Notice string `json:"notice"`
	}{1, "1-x"}
	if err := p.Table.Get(t.Context(), table.Key{PK: "provider#sms-1", SK: "provider"}, &owner); err != nil || owner.Notice != "1-x" {
		t.Fatalf("under the provider's id there is %+v, %v", owner, err)
	}
	// The provider of the event knows the message by another name.
	check(t, p.Table.Write(t.Context(), table.Put(table.Key{PK: "provider#34d9b400-c6dd-5444-820d-fbeb0f1f54cf", SK: "provider"}, owner)))
	check(t, report(t, p, fixture))
	if n := state(t, p, "1-x"); n.State() != notify.Sent || n.Delivered == 0 {
		t.Errorf("the notice is %s, delivered %d", n.State(), n.Delivered)
	}
}

func TestAnUnreadableEventFailsSoThatItBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	h := worker.FeedbackHandler(worker.With(boottest.Ports(t, nil), new(boottest.Cloud).Providers()))
	for _, text := range []string{`[]`, `{"Records":[{"Sns":{"Message":"hello"}}]}`, `{"awslogs":{"data":"?"}}`} {
		if err := h(t.Context(), []byte(text)); err == nil {
			t.Errorf("%s is taken for an event", text)
		}
	}
}
