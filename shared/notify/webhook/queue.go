package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/table"

	"ferry/shared/notify"
)

// layout is the version of the stored form.
const layout = 1

// life is how long a delivery is kept that no process takes up again, because
// its address is configured no more.
const life = 7 * 24 * time.Hour

// delivery is an event on its way to one address, as stored.
type delivery struct {
	V     int64            `json:"v"`
	ID    string           `json:"id"`
	Type  notify.EventType `json:"type"`
	Time  int64            `json:"time"` // of the event, Unix milliseconds
	Body  string           `json:"body"`
	Due   int64            `json:"due"`   // Unix milliseconds
	Tries int64            `json:"tries"` // that have failed
}

// key orders a queue by what is due first.
func (d delivery) key(queue string) table.Key {
	return table.Key{PK: queue, SK: fmt.Sprintf("%013d-%s", d.Due, d.ID)}
}

func (d delivery) put(queue string, now time.Time) table.Op {
	return table.Put(d.key(queue), d).Expire(now.Add(life))
}

// Spread moves all recorded events into the queues of all addresses, each in
// one transaction.
func (d *Dispatcher) Spread(ctx context.Context) error {
	for shard := range notify.EventShards {
		for {
			more, err := d.spread(ctx, notify.EventPartition(shard))
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// spread moves some events of a partition: one read and one transaction.
func (d *Dispatcher) spread(ctx context.Context, partition string) (more bool, err error) {
	limit := table.MaxOps / (1 + len(d.targets))
	page, err := d.Table.Query(ctx, table.Query{PK: partition, Limit: limit})
	if err != nil || len(page.Items) == 0 {
		return false, wrap("reading events", err)
	}
	copies := make([]int64, len(d.targets))
	var ops []table.Op
	for _, item := range page.Items {
		ops = append(ops, table.Delete(item.Key).If(table.Exists()))
		var e notify.RecordedEvent
		if err := item.Decode(&e); err != nil || e.ID != item.Key.SK {
			d.Log.Error("an event is not of a form that this version reads, and is dropped", "id", item.Key.SK)
			continue
		}
		for i, t := range d.targets {
			if t.waiting.Load()+copies[i] >= d.Backlog {
				d.Log.Error("too many events wait for a webhook, and one more is dropped", "webhook", t.name, "id", e.ID, "type", e.Type)
				continue
			}
			copies[i]++
			it := delivery{V: layout, ID: e.ID, Type: e.Type, Time: e.Time, Body: e.Body, Due: d.Now().UnixMilli()}
			ops = append(ops, it.put(t.queue, d.Now()))
		}
	}
	err = d.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return true, nil // another process has moved some; look again
	}
	if err != nil {
		return false, wrap("putting events into queues", err)
	}
	for i, t := range d.targets {
		t.waiting.Add(copies[i])
		t.rouse()
	}
	return page.More, nil
}

// count counts what was left in the queue when the process came up.
func (t *target) count(ctx context.Context) error {
	q := table.Query{PK: t.queue, Limit: table.MaxPage}
	n := int64(0)
	for {
		page, err := t.Table.Query(ctx, q)
		if err != nil {
			return wrap("reading a queue", err)
		}
		n += int64(len(page.Items))
		if !page.More {
			t.waiting.Store(n)
			return nil
		}
		q.After = page.Items[len(page.Items)-1].Key.SK
	}
}

// due returns the deliveries that are due, a batch at most, and when to look
// again; zero if nothing is known to come.
func (t *target) due(ctx context.Context) (due []delivery, next time.Time, err error) {
	page, err := t.Table.Query(ctx, table.Query{PK: t.queue, Limit: batch})
	if err != nil {
		return nil, next, wrap("reading a queue", err)
	}
	now := t.Now()
	for _, item := range page.Items {
		var it delivery
		if err := item.Decode(&it); err != nil || it.key(t.queue) != item.Key {
			t.Log.Error("a delivery is not of a form that this version reads, and is dropped", "id", item.Key.SK)
			if err := t.Table.Write(ctx, table.Delete(item.Key)); err != nil {
				return nil, next, wrap("dropping a delivery", err)
			}
			t.waiting.Add(-1)
			continue
		}
		if at := time.UnixMilli(it.Due); at.After(now) {
			return due, at, nil
		}
		due = append(due, it)
	}
	if page.More {
		next = now
	}
	return due, next, nil
}

// remove ends a delivery. Lost with the power it happens once more.
func (t *target) remove(ctx context.Context, it delivery) error {
	return t.settle(ctx, -1, table.Delete(it.key(t.queue)).If(table.Exists()).Relax())
}

func (t *target) postpone(ctx context.Context, it delivery, until time.Time) error {
	later := it
	later.Due, later.Tries = until.UnixMilli(), it.Tries+1
	return t.settle(ctx, 0, table.Delete(it.key(t.queue)).If(table.Exists()), later.put(t.queue, t.Now()))
}

// settle writes down what came of a delivery. A refused condition is no error:
// another process has done so.
func (t *target) settle(ctx context.Context, change int64, ops ...table.Op) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	err := t.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return nil
	}
	if err == nil {
		t.waiting.Add(change)
	}
	return wrap("settling a delivery", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
