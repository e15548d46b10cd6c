package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

// RelayerHandler returns a function that passes new records on and names those that failed. The
// stream redelivers these and all after them. So an event that its topic refuses for good is given
// up: otherwise it would block all records behind it. The table still has it. A notice is never
// given up, because a topic gets only a pointer to it.
func RelayerHandler(w *Worker) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		records := make([]notify.StreamRecord, len(e.Records))
		for i, r := range e.Records {
			records[i] = relayerRecord(r)
		}
		again := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		for i, err := range notify.Relay(ctx, w.Topics, records) {
			log := w.Log.With("key", records[i].Key.String(), "request", records[i].LogID)
			switch {
			case err == nil:
				log.Info("a record was passed on")
			case errors.Is(err, notify.ErrRefused) && !records[i].Notice():
				log.Error("a record is given up: its topic refuses such a message",
					"error", err)
			default:
				log.Error("a record was not passed on", "error", err)
				failed := events.DynamoDBBatchItemFailure{ItemIdentifier: e.Records[i].Change.SequenceNumber}
				again.BatchItemFailures = append(again.BatchItemFailures, failed)
			}
		}
		return again, nil
	}
}

// relayerRecord reads a new item. The stream's filter lets nothing else through.
func relayerRecord(r events.DynamoDBEventRecord) notify.StreamRecord {
	if r.EventName != string(events.DynamoDBOperationTypeInsert) {
		return notify.StreamRecord{}
	}
	return notify.StreamRecord{
		Key:     table.Key{PK: text(r.Change.Keys, "pk"), SK: text(r.Change.Keys, "sk")},
		Channel: files.Channel(text(r.Change.NewImage, "channel")),
		Type:    text(r.Change.NewImage, "type"),
		Body:    text(r.Change.NewImage, "body"),
		LogID:   text(r.Change.NewImage, "request"),
	}
}

// text returns an attribute that is text, else nothing.
func text(all map[string]events.DynamoDBAttributeValue, name string) string {
	if v, ok := all[name]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}

// courierReserve is the longest time that one notice takes. With less time left, it
// waits for the next event.
const courierReserve = 50 * time.Second

// CourierEvent has messages of a queue or, for password codes, of the topic itself.
type CourierEvent struct{ Records []CourierRecord }

// CourierRecord is a message of a queue, or one of a topic in SNS.
type CourierRecord struct {
	events.SQSMessage
	SNS events.SNSEntity
}

// CourierHandler returns a function that sends notices and names the messages to retry.
// It hides each of these for as long as its notice has to wait: then the queue redelivers
// it, without a timer. A code for a password has no queue: while the provider's rate is
// used up, the function itself waits for a few seconds at a time; otherwise it fails, so
// that Lambda retries the code.
func CourierHandler(w *Worker) func(context.Context, CourierEvent) (events.SQSEventResponse, error) {
	// The sender lives as long as the function, because it knows whether the provider's quota is
	// used up.
	sender := sync.OnceValues(w.sender)
	return func(ctx context.Context, e CourierEvent) (events.SQSEventResponse, error) {
		again := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		s, err := sender()
		if err != nil {
			return again, err
		}
		for _, m := range e.Records {
			m.Body += m.SNS.Message // one of them is empty
			switch done := w.handle(ctx, s, m.SQSMessage); {
			case done:
			case m.SNS.Message != "":
				err = errors.New("a code could not be sent yet") // so Lambda retries it, after 1 and 2 minutes
			default:
				again.BatchItemFailures = append(
					again.BatchItemFailures,
					events.SQSBatchItemFailure{ItemIdentifier: m.MessageId},
				)
			}
		}
		return again, err
	}
}

func (w *Worker) sender() (*notify.Sender, error) {
	p := w.Service
	s, err := notify.NewSender(notify.Config{
		Table:    p.Table,
		Key:      p.Key,
		Couriers: w.Couriers,
		From:     w.MailFrom,
		Now:      p.Now,
		Log:      p.Log,
		Service:  p.Look.Title(),
		Links:    links.Items{Now: p.Now},
		Limits:   p.Notices,
		OnEnd: []notify.OnEnd{
			notify.Remember(p.Now), notify.TellMissing(p.Now), p.Outbox().LinkEnded,
		},
	})
	return s, fault.Wrap(err, "preparing to send notices")
}

// codeWait is how long a function waits to retry a code while only the rate of SES is used
// up. Waiting longer would take functions from the API.
const codeWait = 5 * time.Second

// handle handles one message. done is false if it must be retried. A message that
// points to nothing is dropped: a notice is in the table or nowhere.
func (w *Worker) handle(
	ctx context.Context,
	s *notify.Sender,
	m events.SQSMessage,
) (done bool) {
	p := w.Service
	key, err := notify.PointerKey(m.Body)
	if err != nil {
		p.Log.Error("a message was dropped", "message", m.MessageId, "error", err)
		return true
	}
	if _, ok := ctx.Deadline(); ok && !inTime(ctx, 0) {
		w.delay(ctx, m, 0)
		return false
	}
	again, err := s.Handle(ctx, key)
	for m.ReceiptHandle == "" &&
		again > 0 &&
		again <= codeWait &&
		err == nil &&
		inTime(ctx, again) {
		time.Sleep(again) // Lambda retries a code only twice
		again, err = s.Handle(ctx, key)
	}
	if err != nil {
		p.Log.Error("a notice could not be handled", "id", key.SK, "error", err)
		w.delay(ctx, m, time.Minute)
		return false
	}
	if again > 0 {
		w.delay(ctx, m, again)
	}
	return again <= 0
}

// inTime reports whether a function that has a deadline can handle a notice after a wait.
func inTime(ctx context.Context, wait time.Duration) bool {
	until, ok := ctx.Deadline()
	return ok && time.Until(until)-wait >= courierReserve
}

// delay hides a message of a queue for a while. If that fails, the message comes back
// after the queue's usual time, too early or too late.
func (w *Worker) delay(ctx context.Context, m events.SQSMessage, wait time.Duration) {
	if m.ReceiptHandle == "" { // a topic's
		return
	}
	if err := w.Queue.Delay(ctx, m.ReceiptHandle, wait); err != nil {
		w.Log.Warn("a message could not be delayed and comes again after the queue's usual time",
			"message", m.MessageId,
			"error", err)
	}
}

// event is an event from a topic or a log group.
type event struct {
	Records []events.SNSEventRecord
	AWSLogs events.CloudwatchLogsRawData `json:"awslogs"`
}

// FeedbackHandler returns a function that records feedback. It fails if an event must
// be retried a little later: if the sender has not yet recorded what it sent, or the
// table does not answer.
func FeedbackHandler(w *Worker) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, text json.RawMessage) error {
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("reading an event: %w", err)
		}
		p := w.Service
		var errs []error
		for _, r := range e.Records {
			f, ok, err := notify.MailFeedback([]byte(r.SNS.Message))
			errs = append(errs, feedbackRecord(ctx, p, f, ok, err))
		}
		var texts events.CloudwatchLogsData
		if e.AWSLogs.Data != "" {
			var err error
			texts, err = e.AWSLogs.Parse()
			errs = append(errs, fault.Wrap(err, "reading a log of text messages"))
		}
		for _, line := range texts.LogEvents {
			f, ok, err := notify.SMSFeedback(ctx, p.Table, []byte(line.Message))
			errs = append(errs, feedbackRecord(ctx, p, f, ok, err))
		}
		return errors.Join(errs...)
	}
}

func feedbackRecord(
	ctx context.Context,
	p *service.Service,
	f notify.Feedback,
	ok bool,
	err error,
) error {
	if err != nil || !ok {
		return err
	}
	err = notify.Record(
		ctx,
		p.Table,
		p.Now(),
		f,
		notify.TellMissing(p.Now),
		p.Outbox().LinkEnded,
	)
	if err != nil {
		return err
	}
	p.Log.Info("feedback recorded", "id", f.ID, "kind", f.Kind)
	return nil
}
