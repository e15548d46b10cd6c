package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api/file"
	"ferry/shared/notify"
)

// courierReserve is the most time that one notice takes. With less time left, a
// notice waits for the next event.
const courierReserve = 50 * time.Second

// CourierHandler returns a function that names the messages that must come again.
// It hides each of them for as long as its notice has to wait: the queue brings
// it back then, and no timer runs in between.
func CourierHandler(w *Worker) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		if err := w.Begin(ctx); err != nil {
			return events.SQSEventResponse{}, fmt.Errorf("preparing to send notices: %w", err)
		}
		sender, err := w.sender()
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		again := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, m := range e.Records {
			if !w.handle(ctx, sender, m) {
				again.BatchItemFailures = append(again.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return again, nil
	}
}

func (w *Worker) sender() (*notify.Sender, error) {
	p := w.Function.Ports
	s, err := notify.NewSender(notify.Config{
		Table: p.Table, Key: p.Key, Mail: w.Mail, SMS: w.SMS, From: w.MailFrom, Now: p.Now, Log: p.Log,
		Settled: []notify.Settled{notify.Remember(p.Now), notify.Events(file.Outbox(p).Events)},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to send notices: %w", err)
	}
	return s, nil
}

// handle deals with one message. done is false if it must come again. A message
// that points at nothing is dropped: a notice is in the table or nowhere.
func (w *Worker) handle(ctx context.Context, s *notify.Sender, m events.SQSMessage) (done bool) {
	p := w.Function.Ports
	key, err := notify.PointerKey(m.Body)
	if err != nil {
		p.Log.Error("a message was dropped", "message", m.MessageId, "error", err)
		return true
	}
	if until, ok := ctx.Deadline(); ok && time.Until(until) < courierReserve {
		w.delay(ctx, m, 0)
		return false
	}
	again, err := s.Handle(ctx, key)
	if err != nil { // the queue hides the message for its usual time
		p.Log.Error("a notice could not be handled", "id", key.SK, "error", err)
		return false
	}
	if again > 0 {
		w.delay(ctx, m, again)
	}
	return again <= 0
}

// delay may fail: then the message comes again after the queue's usual time,
// too early or too late.
func (w *Worker) delay(ctx context.Context, m events.SQSMessage, wait time.Duration) {
	if err := w.Queue.Delay(ctx, m.ReceiptHandle, wait); err != nil {
		w.Function.Ports.Log.Warn("a message comes again at the queue's pace", "message", m.MessageId, "error", err)
	}
}
