package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"ferry/shared/table"
)

const (
	// life is how long an event is kept where nobody takes it away.
	eventLife = 7 * 24 * time.Hour
	// anonymous is the source of events of a service that has no address of
	// its own: a relative reference, which CloudEvents allows.
	anonymous = "ferry"
)

// Recorder makes the operations that record events. A nil one records nothing.
// It is safe for concurrent use.
type EventRecorder struct {
	Source string // the service's address, or empty
	Now    func() time.Time
}

// Recorded is an event as stored.
type RecordedEvent struct {
	V    int64     `json:"v"`
	ID   string    `json:"id"` // unique; sorts by time
	Type EventType `json:"type"`
	Time int64     `json:"time"` // Unix milliseconds
	Body string    `json:"body"` // the CloudEvent, as it is sent
	// Request is the id of the request that it comes of, empty if of none.
	Request string `json:"request,omitempty"`
}

// cloudEvent is the JSON form of CloudEvents 1.0.
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        EventType `json:"type"`
	Subject     string    `json:"subject"`
	Time        string    `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Request     string    `json:"requestid,omitempty"` // an extension attribute
	Data        any       `json:"data"`
}

// Ops returns the operations for the transaction that the events tell of: one
// for each event, none if r is nil. request is the id of the request that they
// come of, empty if of none.
func (r *EventRecorder) Ops(request string, all ...Event) []table.Op {
	if r == nil {
		return nil
	}
	ops := make([]table.Op, len(all))
	for i, e := range all {
		now := r.Now().UTC()
		stored := r.record(e, request, now)
		ops[i] = table.Put(stored.Key(), stored).Expire(now.Add(eventLife))
	}
	return ops
}

func (r *EventRecorder) record(e Event, request string, now time.Time) RecordedEvent {
	sum := sha256.Sum256([]byte(string(e.Type) + "\x00" + e.Once))
	id := fmt.Sprintf("%013d-%x", now.UnixMilli(), sum[:8])
	body, _ := json.Marshal(cloudEvent{ // its data are structs of text and numbers, which always marshal
		SpecVersion: "1.0", ID: id, Source: cmp.Or(r.Source, anonymous), Type: e.Type, Subject: e.Subject,
		Time: now.Format(time.RFC3339Nano), ContentType: "application/json", Request: request, Data: e.Data,
	})
	return RecordedEvent{V: layout, ID: id, Type: e.Type, Time: now.UnixMilli(), Body: string(body), Request: request}
}

// Key is where the event is stored.
func (r RecordedEvent) Key() table.Key { return shardedKey(EventPrefix, r.ID) }
