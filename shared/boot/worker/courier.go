// Package courier sends the notices that a queue's messages point at.

package worker

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/table"

	ferrylambda "ferry/shared/boot/lambda"
	"ferry/shared/notify"

	"ferry/shared/api"
)

// reserve is what one notice may take, from its reading to its end: what would
// be begun with less time left waits for the next event.
const courierReserve = 50 * time.Second

// Run sends what each event's messages point at. It does not return.
func RunCourier(ports ...ferrylambda.Opener) {
	lambda.Start(CourierHandler(ferrylambda.Open(os.Getenv, ports...)))
}

// Handler returns a function that names the messages which are not done with.
// Each of these it hides for as long as its notice has to wait: the queue
// brings it again then, and no timer has to run in between.
func CourierHandler(f *ferrylambda.Function) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		if err := f.Begin(ctx); err != nil {
			return events.SQSEventResponse{}, fmt.Errorf("preparing to send notices: %w", err)
		}
		sender, err := sender(f.Ports)
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		again := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, m := range e.Records {
			if !handle(ctx, f.Ports, sender, m) {
				again.BatchItemFailures = append(again.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return again, nil
	}
}

func sender(p *api.Ports) (*notify.Sender, error) {
	public, remember := notify.Events(p.Recorder()), notify.Remember(p.Now)
	s, err := notify.NewSender(notify.Config{
		Table: p.Table, Key: p.Key, Mail: p.Mail, SMS: p.SMS, From: p.MailFrom, Now: p.Now, Log: p.Log,
		Settled: func(n notify.Notice, state notify.State) []table.Op {
			ops := remember(n, state)
			if public != nil {
				ops = append(ops, public(n, state)...)
			}
			return ops
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to send notices: %w", err)
	}
	return s, nil
}

// handle deals with one message. done is false if it is to come again. A
// message that points at nothing is dropped: only the table knows of notices.
func handle(ctx context.Context, p *api.Ports, s *notify.Sender, m events.SQSMessage) (done bool) {
	key, err := notify.PointerKey(m.Body)
	if err != nil {
		p.Log.Error("a message was dropped", "message", m.MessageId, "error", err)
		return true
	}
	if until, ok := ctx.Deadline(); ok && time.Until(until) < courierReserve {
		delay(ctx, p, m, 0)
		return false
	}
	again, err := s.Handle(ctx, key)
	if err != nil { // the queue hides the message for its usual time
		p.Log.Error("a notice could not be handled", "id", key.SK, "error", err)
		return false
	}
	if again > 0 {
		delay(ctx, p, m, again)
	}
	return again <= 0
}

// delay may fail: then the message comes again after the queue's usual time,
// too early or too late.
func delay(ctx context.Context, p *api.Ports, m events.SQSMessage, wait time.Duration) {
	if err := p.Queue.Delay(ctx, m.ReceiptHandle, wait); err != nil {
		p.Log.Warn("a message comes again at the queue's pace", "message", m.MessageId, "error", err)
	}
}
