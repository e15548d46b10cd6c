package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/service"
	"ferry/shared/table"
)

// post has the ports of one machine, a clock, and notices in the outbox.
type post struct {
	*testing.T
	*service.Service
	cloud     boottest.Cloud
	providers worker.Providers
	ahead     time.Duration
}

func begin(t *testing.T) *post {
	t.Helper()
	p := &post{T: t, Service: boottest.Service(t, nil)}
	p.Events, p.Now = true, func() time.Time { return time.Now().Add(p.ahead) }
	p.providers = p.cloud.Providers()
	return p
}

// notice puts a notice of alice's first file into the outbox.
func (p *post) notice(unique string, channel files.Channel, to string) table.Key {
	p.Helper()
	op := notify.Notice{
		Kind: notify.Link, Channel: channel, To: to, Lang: "en", Base: "https://files.example.com/v1",
		Owner: "alice", Area: blob.Files, File: 1, Name: "a.txt", Sender: "alice",
	}.Op(p.Now(), unique)
	expect.NoErr(p.T, p.Table.Write(p.Context(), op))
	return op.Key
}

func (p *post) courier() func(context.Context, worker.CourierEvent) (events.SQSEventResponse, error) {
	return worker.CourierHandler(&worker.Worker{Service: p.Service, Providers: p.providers})
}

func message(id string, key table.Key) events.SQSMessage {
	return events.SQSMessage{MessageId: id, ReceiptHandle: "receipt-" + id, Body: notify.Pointer(key, "mail").Body}
}

// queued is the event of messages in a queue.
func queued(messages ...events.SQSMessage) (e worker.CourierEvent) {
	for _, m := range messages {
		e.Records = append(e.Records, worker.CourierRecord{SQSMessage: m})
	}
	return e
}

// handle returns the names of the messages that must come again.
func (p *post) handle(ctx context.Context, messages ...events.SQSMessage) (again []string) {
	p.Helper()
	answer, err := p.courier()(ctx, queued(messages...))
	expect.NoErr(p.T, err)
	for _, f := range answer.BatchItemFailures {
		again = append(again, f.ItemIdentifier)
	}
	return again
}

func (p *post) state(key table.Key) notify.State { return p.stored(key).State() }

func (p *post) stored(key table.Key) notify.Notice {
	p.Helper()
	n, err := notify.Find(p.Context(), p.Table, key.SK)
	expect.NoErr(p.T, err)
	return n
}

func TestEachFunctionHandlesItsQueueEvent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"email", "sms"} {
		fixture := boottest.Load(t, name)
		answer, err := lambda.NewHandler(begin(t).courier()).Invoke(t.Context(), fixture.Event)
		expect.NoErr(t, err)
		expect.NoErr(t, fixture.Expect.Check(answer))
	}
}

func TestEachChannelHasItsProviderAndAMessageThatPointsToNothingIsDropped(t *testing.T) {
	t.Parallel()
	p := begin(t)
	nothing := events.SQSMessage{MessageId: "0", Body: `{"pk":"user#alice","sk":"user"}`}
	mail, text := p.notice("a", files.Mail, "ann@example.com"), p.notice("b", files.SMS, "+393331234567")
	expect.Equal(t, "what must come again", p.handle(t.Context(), nothing, message("1", mail), message("2", text)), nil)
	if len(p.cloud.Mails) != 1 ||
		p.cloud.Mails[0].To != "ann@example.com" ||
		len(p.cloud.Texts) != 1 ||
		p.cloud.Texts[0].To != "+393331234567" {
		t.Errorf("sent were %v and %v", p.cloud.Mails, p.cloud.Texts)
	}
	expect.Equal(t, "the mail", p.state(mail), notify.Sent)
	expect.Equal(t, "the text message", p.state(text), notify.Sent)
}

func TestAFailureHidesTheMessageUntilTheRetry(t *testing.T) {
	t.Parallel()
	p := begin(t)
	key := p.notice("a", files.Mail, "ann@example.com")
	p.cloud.MailErr = errors.New("down")
	expect.Equal(t, "what must come again", p.handle(t.Context(), message("1", key)), []string{"1"})
	if wait := p.cloud.Delayed["receipt-1"]; wait <= 0 || wait > time.Second {
		t.Errorf("it is hidden for %v", wait)
	}
	p.cloud.QueueErr = errors.New("no queue")
	expect.Equal(t, "what must come again without the queue", p.handle(t.Context(), message("1", key)), []string{"1"})
	p.ahead, p.cloud.MailErr = time.Second, nil
	expect.Equal(t, "what must come again then", p.handle(t.Context(), message("1", key)), nil)
	expect.Equal(t, "the notice", p.state(key), notify.Sent)
}

func TestANoticeWithoutEnoughTimeLeftComesAgainAtOnce(t *testing.T) {
	t.Parallel()
	p := begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	again := p.handle(ctx, message("1", p.notice("a", files.Mail, "ann@example.com")))
	if wait, ok := p.cloud.Delayed["receipt-1"]; len(again) != 1 || !ok || wait != 0 || len(p.cloud.Mails) != 0 {
		t.Errorf("these must come again: %v after %v, and %v were sent", again, p.cloud.Delayed, p.cloud.Mails)
	}
}

// code puts a code for a password into the outbox, and returns the topic's event about it.
func (p *post) code() (table.Key, worker.CourierEvent) {
	p.Helper()
	op := notify.Notice{
		Kind: notify.PIN, Channel: files.Mail, To: "alice@example.com", Lang: "en", User: "alice", Nonce: "nonce",
		Expires: p.Now().Add(15 * time.Minute).Unix(),
	}.Op(p.Now(), "code")
	expect.NoErr(p.T, p.Table.Write(p.Context(), op))
	m := notify.Pointer(op.Key, "mail")
	expect.Equal(p.T, "the way of a code", m.Value, "code")
	body, err := json.Marshal(m.Body)
	expect.NoErr(p.T, err)
	var e worker.CourierEvent
	expect.NoErr(p.T, json.Unmarshal(fmt.Appendf(nil, `{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0",
		"Sns":{"Type":"Notification","MessageId":"95df01b4","Message":%s,
		"MessageAttributes":{"channel":{"Type":"String","Value":"code"}}}}]}`, body), &e))
	return op.Key, e
}

func TestACodeComesStraightFromTheTopic(t *testing.T) {
	t.Parallel()
	p := begin(t)
	key, e := p.code()
	courier := p.courier()
	p.cloud.MailErr = fmt.Errorf("%w: status 429", mail.ErrQuota)
	if _, err := courier(t.Context(), e); err == nil || p.state(key) != notify.Queued || p.cloud.Delayed != nil {
		t.Fatalf("Lambda does not bring a code again: %v, %s, %v", err, p.state(key), p.cloud.Delayed)
	}
	p.ahead, p.cloud.MailErr = time.Minute, nil // when Lambda does
	for range 2 {
		if _, err := courier(t.Context(), e); err != nil || len(p.cloud.Mails) != 1 {
			t.Errorf("%v, and %d mails were sent", err, len(p.cloud.Mails))
		}
	}
}

// saturated refuses some mails for the provider's rate.
type saturated struct {
	mail.Sender
	refusals atomic.Int64
}

func (s *saturated) Send(ctx context.Context, m mail.Message) (string, error) {
	if s.refusals.Add(-1) >= 0 {
		return "", fmt.Errorf("%w: status 429", mail.ErrRate)
	}
	return s.Sender.Send(ctx, m)
}

// TestACodeWaitsInTheFunctionForTheRate: Lambda would bring it again only twice. The last
// 50 s are for a try.
func TestACodeWaitsInTheFunctionForTheRate(t *testing.T) {
	t.Parallel()
	for reserved, sent := range map[time.Duration]int{50 * time.Second: 0, 15 * time.Minute: 1} {
		p := begin(t)
		s := &saturated{Sender: p.cloud.Mail()}
		s.refusals.Store(1)
		p.providers.Couriers[files.Mail] = notify.ByMail(s)
		key, e := p.code()
		ctx, cancel := context.WithTimeout(t.Context(), reserved)
		defer cancel()
		_, err := p.courier()(ctx, e)
		if len(p.cloud.Mails) != sent || (err == nil) != (sent == 1) {
			t.Errorf("with %s left: %v, %d mails were sent, and the code is %s",
				reserved, err, len(p.cloud.Mails), p.state(key))
		}
	}
}

func TestAQuotaIsRememberedFromEventToEvent(t *testing.T) {
	t.Parallel()
	p := begin(t)
	courier := p.courier()
	p.cloud.MailErr = fmt.Errorf("%w: status 429", mail.ErrQuota)
	for i := range 3 {
		key := p.notice(fmt.Sprint(i), files.Mail, "ann@example.com")
		again, err := courier(t.Context(), queued(message("1", key)))
		if wait := p.cloud.Delayed["receipt-1"]; err != nil ||
			len(again.BatchItemFailures) != 1 ||
			wait < 29*time.Minute ||
			wait > time.Hour {
			t.Fatalf("%v, %v, again after %v", err, again, wait)
		}
		p.cloud.MailErr = nil // another try would succeed
	}
	expect.Equal(t, "mails that were tried while the quota was used up", len(p.cloud.Mails), 0)
}
