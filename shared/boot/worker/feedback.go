package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/notify"
)

// event is one of a topic or one of a log group.
type event struct {
	Records []events.SNSEventRecord
	AWSLogs events.CloudwatchLogsRawData `json:"awslogs"`
}

// FeedbackHandler returns a function that fails if something is to be told again, a
// little later: when the sender has not yet written down what it has sent, or
// the table does not answer.
func FeedbackHandler(w *Worker) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, text json.RawMessage) error {
		if err := w.Begin(ctx); err != nil {
			return fmt.Errorf("preparing to record feedback: %w", err)
		}
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("reading an event: %w", err)
		}
		return errors.Join(mails(ctx, w.Function.Ports, e.Records), texts(ctx, w.Function.Ports, e.AWSLogs))
	}
}

func mails(ctx context.Context, p *api.Ports, records []events.SNSEventRecord) error {
	var errs []error
	for _, r := range records {
		f, ok, err := notify.MailFeedback([]byte(r.SNS.Message))
		errs = append(errs, feedbackRecord(ctx, p, f, ok, err))
	}
	return errors.Join(errs...)
}

func texts(ctx context.Context, p *api.Ports, raw events.CloudwatchLogsRawData) error {
	if raw.Data == "" {
		return nil
	}
	data, err := raw.Parse()
	if err != nil {
		return fmt.Errorf("reading a log of text messages: %w", err)
	}
	var errs []error
	for _, line := range data.LogEvents {
		f, ok, err := notify.SMSFeedback(ctx, p.Table, []byte(line.Message))
		errs = append(errs, feedbackRecord(ctx, p, f, ok, err))
	}
	return errors.Join(errs...)
}

func feedbackRecord(ctx context.Context, p *api.Ports, f notify.Feedback, ok bool, err error) error {
	if err != nil || !ok {
		return err
	}
	if err := notify.Record(ctx, p.Table, p.Now(), f, notify.Events(file.Outbox(p).Events)); err != nil {
		return err
	}
	p.Log.Info("feedback recorded", "id", f.ID, "kind", f.Kind)
	return nil
}
