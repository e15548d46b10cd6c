package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// Topic is where messages are published.
type Topic string

// The topics.
const (
	NoticesTopic Topic = "notices"
	EventsTopic  Topic = "events"
)

// The attributes that subscribers may filter by, of notices and of events.
const (
	ChannelAttribute = "channel"
	TypeAttribute    = "type"
)

// The prefixes of the partitions that are relayed, as in the filter of the table's stream.
const (
	OutboxPrefix = "outbox#"
	EventPrefix  = "event#"
)

// MaxBatch is the maximum number of messages in one Publish.
const MaxBatch = 10

// TopicMessage is a message for a topic, with one attribute.
type TopicMessage struct{ Body, Attribute, Value string }

// ErrRefused matches the error of a message that the topic will always refuse, such
// as one that is too long.
var ErrRefused = errors.New("the topic refuses the message")

// Topics is the port to the topics. It is safe for concurrent use.
type Topics interface {
	// Publish sends up to MaxBatch messages and returns an error for each, nil for one that was
	// published. A message with an error may have been published all the same. A message never
	// fails with ErrRefused because of another.
	Publish(ctx context.Context, to Topic, messages []TopicMessage) []error
}

// StreamRecord is an item that was written. Fields that the item lacks are empty.
type StreamRecord struct {
	Key     table.Key
	Channel files.Channel // of a notice
	Type    string        // of an event
	Body    string        // of an event
	LogID   string        // of the HTTP request that caused it
}

// Notice reports whether the item is a notice.
func (r StreamRecord) Notice() bool { return strings.HasPrefix(r.Key.PK, OutboxPrefix) }

// message returns what is published for the record, and to which topic: none if nothing is.
func (r StreamRecord) message() (to Topic, m TopicMessage) {
	switch {
	case r.Notice():
		return NoticesTopic, Pointer(r.Key, r.Channel)
	case strings.HasPrefix(r.Key.PK, EventPrefix) && r.Body != "" && r.Type != "":
		return EventsTopic, TopicMessage{writable(r.Body), TypeAttribute, r.Type}
	}
	return "", TopicMessage{}
}

// writable escapes, in JSON, the two characters that SQS does not allow in a
// message but that a file's name may have. Otherwise such an event would be refused
// each time, and block everything behind it in the stream.
func writable(body string) string {
	return strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(body)
}

// pointer is the body of a message that points at a notice.
type pointer struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// codeChannel is the channel that messages name for password codes: these reach the mail sender
// by a path of their own, so that nothing else delays them.
const codeChannel = "code"

// Pointer returns the message that tells a sender where a notice is.
func Pointer(key table.Key, channel files.Channel) TopicMessage {
	queue := laneOf(channel)
	if strings.HasPrefix(key.SK, CodePrefix) {
		queue = codeChannel
	}
	body, _ := json.Marshal(pointer(key)) // two texts always marshal
	return TopicMessage{string(body), ChannelAttribute, string(queue)}
}

// PointerKey returns the key that a message points at.
func PointerKey(body string) (table.Key, error) {
	var p pointer
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		return table.Key{}, fmt.Errorf("reading a pointer to a notice: %w", err)
	}
	if !strings.HasPrefix(p.PK, OutboxPrefix) || p.SK == "" {
		return table.Key{}, errors.New("reading a pointer to a notice: it names none")
	}
	return table.Key(p), nil
}

// Relay publishes what was written: for a notice, a pointer to it, to the topic
// of the senders; for a public event, the event, to the topic that is open to
// subscribers. It tries all records and returns an error for each, nil if
// nothing is left to do.
//
// A message to the senders only points at the notice, and only the table knows its
// state. So a message may come twice, late or in any order, and if one is lost,
// Remind sends another.
func Relay(ctx context.Context, topics Topics, records []StreamRecord) []error {
	errs := make([]error, len(records))
	var both sync.WaitGroup
	for _, to := range []Topic{NoticesTopic, EventsTopic} {
		var messages []TopicMessage
		var of []int // the records
		for i, r := range records {
			if topic, m := r.message(); topic == to {
				messages, of = append(messages, m), append(of, i)
			}
		}
		both.Go(func() {
			for i, err := range publish(ctx, topics, to, messages) {
				errs[of[i]] = err
			}
		})
	}
	both.Wait()
	return errs
}

// publishers is how many batches are published at once: as many as a batch of the
// table's stream can need.
const publishers = 10

func publish(ctx context.Context, topics Topics, to Topic, messages []TopicMessage) []error {
	errs := make([]error, len(messages))
	var all errgroup.Group
	all.SetLimit(publishers)
	for i := 0; i < len(messages); i += MaxBatch {
		all.Go(func() error {
			copy(errs[i:], topics.Publish(ctx, to, messages[i:min(i+MaxBatch, len(messages))]))
			return nil
		})
	}
	_ = all.Wait() // each message has its own error
	return errs
}

// MaxDelay is the longest that a queue hides a message.
const MaxDelay = 12 * time.Hour

// Queue is the port to the queue that a sender's messages come from.
type Queue interface {
	// Delay hides a message that was received, named by its receipt, for
	// some time: at most MaxDelay from when it was received.
	Delay(ctx context.Context, receipt string, wait time.Duration) error
}

// OverdueAge is how long after its due time a notice counts as overdue. A working sender would have
// handled it by then.
const OverdueAge = time.Hour

// MaxEnded is the maximum number of notices that one run of Remind ends, because each needs a
// write. The next run does the rest.
const MaxEnded = 5000

// RemindReport counts what a run did.
type RemindReport struct {
	Pointed int // notices for which another message was sent
	Ended   int // notices that were too late to send
}

// Remind sends another message to the senders about each overdue notice: the first was lost, or
// no sender was running. It ends notices that are too late to send: without a sender nothing
// else does. It stops at the first partition with an error. also adds operations for a notice
// that fails.
func Remind(
	ctx context.Context,
	t table.Table,
	topics Topics,
	now time.Time,
	also ...OnEnd,
) (r RemindReport, err error) {
	var waiting []TopicMessage
	point := func() error {
		r.Pointed += len(waiting)
		err := errors.Join(publish(ctx, topics, NoticesTopic, waiting)...)
		waiting = nil
		return fault.Wrap(err, "pointing at overdue notices")
	}
	for _, pk := range partitions(OutboxPrefix) {
		for item, err := range table.Each(ctx, t, table.Query{PK: pk}) {
			if err != nil {
				return r, fmt.Errorf("looking for overdue notices: %w", err)
			}
			n, unread := read(item)
			late := n.tooLate(now)
			switch {
			case unread == nil && now.Sub(clampDue(now, n.NotBefore)) < OverdueAge:
			case unread != nil || late == nil: // a sender will give up an unreadable notice
				waiting = append(waiting, Pointer(item.Key, n.Channel))
				if len(waiting) == table.MaxPage {
					err = point()
				}
			case r.Ended < MaxEnded:
				r.Ended++
				ops := n.failed(now, brief(late)).end(now, also, n.untouched()...)
				err = unlessTaken("ending a late notice", t.Write(ctx, ops...))
			}
			if err != nil {
				return r, errors.Join(err, point())
			}
		}
		if err := point(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// tooLate returns why a notice is too late to send: it has expired, or has waited
// for 90 days without a sender.
func (n Notice) tooLate(now time.Time) error {
	switch {
	case n.expired(now):
		return fmt.Errorf("%w: it has expired", ErrObsolete)
	case now.Sub(n.since()) >= keepMost:
		return fmt.Errorf("%w: it has waited too long", ErrObsolete)
	}
	return nil
}
