package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ferry/shared/table"
)

const (
	// backlog is the maximum number of events that wait for one webhook.
	backlog = 100_000
	// spreadEvery is how often to look for new events.
	spreadEvery = time.Second
)

// hook is a webhook with its part of the outbox.
type hook struct {
	*Sender
	*Receiver
	queue   string // the partition of its events
	lane    *lane
	waiting atomic.Int64 // events in the queue, roughly
	mu      sync.Mutex
	counted bool
}

// hookEvent is an event on its way to one webhook, as stored.
type hookEvent struct {
	RecordedEvent       // without the request
	Due           int64 `json:"due"` // Unix milliseconds
	Tries         int64 `json:"tries"`
}

// key returns a key that sorts a webhook's events by when they are due.
func (e hookEvent) key(queue string) table.Key {
	return table.Key{PK: queue, SK: fmt.Sprintf("%013d-%s", e.Due, e.ID)}
}

func (h *hook) put(e hookEvent) table.Op {
	return table.Put(e.key(h.queue), e).Expire(h.Now().Add(eventLife))
}

// Spread moves all recorded events into the outbox, once for each webhook. It does nothing if there
// are no webhooks.
func (s *Sender) Spread(ctx context.Context) error {
	if len(s.hooks) == 0 {
		return nil
	}
	for _, h := range s.hooks {
		if err := h.count(ctx); err != nil {
			return err
		}
	}
	for {
		if more, err := s.spreadSome(ctx); !more || err != nil {
			return err
		}
	}
}

// spreadSome moves as many events as fit one transaction, from all partitions.
func (s *Sender) spreadSome(ctx context.Context) (more bool, err error) {
	most := table.MaxOps / (1 + len(s.hooks))
	found, err := s.recorded(ctx, most)
	if err != nil || len(found) == 0 {
		return false, err
	}
	ops, copies := s.moves(found)
	if err := s.Table.Write(ctx, ops...); err != nil { // look again if another process has moved some
		return errors.Is(
			err,
			table.ErrCondition,
		), unlessTaken("moving events into the outbox", err)
	}
	for i, h := range s.hooks {
		h.waiting.Add(copies[i])
		h.lane.wake.send()
	}
	return len(found) == most, nil
}

// recorded returns up to most recorded events.
func (s *Sender) recorded(ctx context.Context, most int) (found []table.Item, err error) {
	for _, pk := range partitions(EventPrefix) {
		if len(found) == most {
			break
		}
		page, err := s.Table.Query(ctx, table.Query{PK: pk, Limit: most - len(found)})
		if err != nil {
			return nil, fmt.Errorf("reading events: %w", err)
		}
		found = append(found, page.Items...)
	}
	return found, nil
}

// moves returns the operations that move events into the outbox, and how many each webhook gets.
func (s *Sender) moves(found []table.Item) (ops []table.Op, copies []int64) {
	copies = make([]int64, len(s.hooks))
	for _, item := range found {
		ops = append(ops, table.Delete(item.Key).If(table.Exists()))
		var e RecordedEvent
		if err := item.Decode(&e); err != nil || e.ID != item.Key.SK {
			s.Log.Error("event dropped: this version cannot read it", "id", item.Key.SK)
			continue
		}
		e.V, e.LogID = table.Format, ""
		for i, h := range s.hooks {
			if h.waiting.Load()+copies[i] >= s.backlog {
				s.Log.Error("event dropped: too many wait for the webhook",
					"webhook", h.Name, "id", e.ID, "type", e.Type)
				continue
			}
			copies[i]++
			ops = append(ops, h.put(hookEvent{RecordedEvent: e, Due: s.Now().UnixMilli()}))
		}
	}
	return ops, copies
}

// Events yields the events that wait for webhooks, as notices with an ID and a time.
func (s *Sender) Events(ctx context.Context) iter.Seq2[Notice, error] {
	var queues []string
	for _, h := range s.hooks {
		queues = append(queues, h.queue)
	}
	return scan(ctx, s.Table, table.Query{}, func(item table.Item) (Notice, error) {
		var e hookEvent
		_ = item.Decode(&e) // an unreadable event waits until its lane drops it
		return Notice{ID: item.Key.SK, Created: e.Time / 1000}, nil
	}, queues...)
}

// count counts the events that were in the outbox when the process started. It must be
// called before the first of them is delivered and before a new one is added.
func (h *hook) count(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counted {
		return nil
	}
	n := int64(0)
	for _, err := range table.Each(ctx, h.Table, table.Query{PK: h.queue}) {
		if err != nil {
			return err
		}
		n++
	}
	h.waiting.Store(n)
	h.counted = true
	return nil
}

// hookEntry is an event that a sender is working on.
type hookEntry struct {
	*hook
	event hookEvent
}

// read drops an item that is not an event.
func (h *hook) read(ctx context.Context, item table.Item) (entry, error) {
	if err := h.count(ctx); err != nil {
		return nil, err
	}
	var e hookEvent
	if err := item.Decode(&e); err == nil && e.key(h.queue) == item.Key {
		return &hookEntry{h, e}, nil
	}
	h.Log.Error("event dropped: this version cannot read it", "id", item.Key.SK)
	err := h.Table.Write(ctx, table.Delete(item.Key))
	if err == nil {
		h.waiting.Add(-1)
	}
	return nil, unlessTaken("dropping an event", err)
}

func (e *hookEntry) due() time.Time { return clampDue(e.Now(), e.event.Due) }

func (e *hookEntry) hold(time.Time) (until time.Time, ops []table.Op) { return until, nil }

func (e *hookEntry) age(now time.Time) (age time.Duration, tries int64, spent bool) {
	age = now.Sub(time.UnixMilli(e.event.Time))
	return age, e.event.Tries, age >= giveUp || enough(age, e.event.Tries)
}

func (e *hookEntry) log() (log *slog.Logger, what string) {
	return e.Log.With("webhook", e.Name, "id", e.event.ID, "type", e.event.Type, "try", e.event.Tries), "event"
}

func (e *hookEntry) deliver(ctx context.Context) error {
	return e.Post(ctx, e.Now(), e.event.ID, e.event.Body)
}

// lease moves the event behind the ones that are due.
func (e *hookEntry) lease(until time.Time) []table.Op {
	e.event.Tries++
	ops := e.postpone(until, nil)
	for i := range ops {
		ops[i] = ops[i].Relax() // if a power cut loses the write, the event is only sent sooner
	}
	return ops
}

func (e *hookEntry) postpone(until time.Time, _ error) []table.Op {
	from := e.event.key(e.queue)
	e.event.Due = until.UnixMilli()
	op := e.put(e.event)
	if op.Key == from { // the receiver asked to wait exactly until the lease ends
		return []table.Op{op.If(table.Exists())}
	}
	return []table.Op{table.Delete(from).If(table.Exists()), op}
}

// end removes the event. If a power cut loses the write, the event is sent again.
func (e *hookEntry) end(time.Time, error) []table.Op {
	return []table.Op{table.Delete(e.event.key(e.queue)).If(table.Exists()).Relax()}
}

func (e *hookEntry) ended() { e.waiting.Add(-1) }
