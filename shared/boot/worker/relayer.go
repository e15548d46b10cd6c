package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/notify"
	"ferry/shared/table"
)

// RelayerHandler returns a function that names the records which could not be passed
// on. The stream brings these, and those after them, again; so an event that its
// topic refuses for good is left out: all behind it would wait for as long as
// the stream tries. The table still has it. Of a notice nothing is published
// that a topic could refuse, and so none is ever left out.
func RelayerHandler(w *Worker) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		if err := w.Begin(ctx); err != nil {
			return events.DynamoDBEventResponse{}, fmt.Errorf("preparing to pass records on: %w", err)
		}
		records := make([]notify.StreamRecord, len(e.Records))
		for i, r := range e.Records {
			records[i] = relayerRecord(r)
		}
		again := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		for i, err := range notify.Relay(ctx, w.Topics, records) {
			log := w.Function.Ports.Log.With("key", records[i].Key.String(), "request", records[i].Request)
			switch {
			case err == nil:
				log.Info("a record was passed on")
			case errors.Is(err, notify.ErrRefused) && !records[i].Notice():
				log.Error("a record is given up: its topic takes no such message", "error", err)
			default:
				log.Error("a record was not passed on", "error", err)
				again.BatchItemFailures = append(again.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: e.Records[i].Change.SequenceNumber})
			}
		}
		return again, nil
	}
}

// relayerRecord reads a new item. The filter of the stream lets no others through.
func relayerRecord(r events.DynamoDBEventRecord) notify.StreamRecord {
	if r.EventName != string(events.DynamoDBOperationTypeInsert) {
		return notify.StreamRecord{}
	}
	return notify.StreamRecord{
		Key:     table.Key{PK: text(r.Change.Keys, "pk"), SK: text(r.Change.Keys, "sk")},
		Channel: text(r.Change.NewImage, "channel"), Type: text(r.Change.NewImage, "type"), Body: text(r.Change.NewImage, "body"),
		Request: text(r.Change.NewImage, "request"),
	}
}

// text is an attribute that is text, or empty.
func text(all map[string]events.DynamoDBAttributeValue, name string) string {
	if v, ok := all[name]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}
