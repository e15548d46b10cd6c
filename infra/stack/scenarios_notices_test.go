package stack

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

func relayAll(s *stage) {
	var e events.DynamoDBEvent
	boottest.Load(s, "relay").Decode(s, &e)
	answer, err := worker.RelayerHandler(s.worker)(s.Context(), e)
	s.check(err)
	if len(answer.BatchItemFailures) > 0 {
		s.Fatalf("these were not passed on: %v", answer.BatchItemFailures)
	}
}

// sendAll sends all kinds of notices of a channel: one at once, one after a while, and one
// never.
func sendAll(s *stage, channel files.Channel, to string) {
	notice := func(n notify.Notice) table.Key {
		n.Channel, n.Lang, n.Base, n.Owner, n.Area, n.Name, n.Sender = channel, "en", s.real.PublicURL, "alice", blob.Files, "a.txt", "alice"
		n.ReplyTo = "alice@example.com"
		if n.To == "" {
			n.To = to
		}
		op := n.Op(s.real.Now(), s.unique())
		s.check(s.real.Table.Write(s.Context(), op))
		return op.Key
	}
	link := notify.Notice{Kind: notify.Link, File: 1}
	first := notice(link)
	s.deliver(first)
	s.deliver(first)
	down := errors.New("down")
	s.cloud.MailErr, s.cloud.SMSErr = down, down
	late := notice(link)
	s.deliver(late)
	s.cloud.MailErr, s.cloud.SMSErr = nil, nil
	s.ahead += time.Hour
	s.deliver(late)
	s.deliver(notice(notify.Notice{Kind: notify.Link, File: 1, To: "nobody"}))
	s.deliver(notice(notify.Notice{Kind: notify.Receipt, File: 1}))
	s.deliver(notice(notify.Notice{Kind: notify.PIN, User: "alice", Nonce: "x"}))
	s.ahead += time.Hour
	for n, err := range notify.Waiting(s.Context(), s.real.Table) {
		s.check(err)
		if n.Kind == notify.Missing && channel == files.Mail {
			s.deliver(n.Key())
		}
	}
}

func (s *stage) unique() string {
	s.ahead += time.Second
	return "x"
}

// deliver hands a message of the queue to the function.
func (s *stage) deliver(key table.Key) {
	s.Helper()
	m := events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: notify.Pointer(key, "").Body}
	_, err := worker.CourierHandler(s.worker)(
		s.Context(),
		worker.CourierEvent{Records: []worker.CourierRecord{{SQSMessage: m}}},
	)
	s.check(err)
}

// feedbackAll reports a mail that was sent and bounced, and a text message that
// arrived.
func feedbackAll(s *stage) {
	sender, err := notify.NewSender(notify.Config{
		Table: s.real.Table, Key: s.real.Key, Couriers: s.cloud.Couriers(), From: mailFrom, Now: s.real.Now, Log: s.real.Log,
	})
	s.check(err)
	n := notify.Notice{
		V:       1,
		ID:      "1759460400000-0a1b2c3d4e5f6071",
		Kind:    notify.Link,
		Channel: files.Mail,
		To:      "carla@example.com",
		Owner:   "alice",
		Area:    blob.Files,
		File:    1,
		Sender:  "alice",
		ReplyTo: "alice@example.com",
	}
	report := func(name string) {
		s.check(worker.FeedbackHandler(s.worker)(s.Context(), json.RawMessage(boottest.Load(s, name).Event)))
	}
	s.check(s.real.Table.Write(s.Context(), table.Put(n.Key(), n)))
	_, err = sender.Handle(s.Context(), n.Key())
	s.check(err)
	report("feedback")
	n.ID, n.Channel, n.To = "2-x", files.SMS, "+393331234567"
	s.check(s.real.Table.Write(s.Context(), table.Put(n.Key(), n)))
	n.Provider = "34d9b400-c6dd-5444-820d-fbeb0f1f54cf" // as in the event
	s.check(s.real.Table.Write(s.Context(), notify.Remember(s.real.Now)(n, notify.Sent)...))
	_, err = sender.Handle(s.Context(), n.Key())
	s.check(err)
	report("feedbacksms")
}
