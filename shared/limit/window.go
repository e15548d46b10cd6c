package limit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Window counts something in fixed periods of UTC, such as hours. Each period has its own item,
// which expires with it.
type Window struct {
	PK     string
	Length time.Duration
	Add    int64 // by how much a request raises the count
	Most   int64
	What   string // is counted, as a refusal says
}

// Key returns the key of the period's count.
func (w Window) Key(at time.Time) table.Key {
	hours := strconv.Itoa(int(w.Length.Hours()))
	return table.Key{PK: w.PK, SK: hours + "h#" + w.begin(at).Format(time.RFC3339)}
}

// End returns when the period ends.
func (w Window) End(at time.Time) time.Time { return w.begin(at).Add(w.Length) }

func (w Window) begin(at time.Time) time.Time { return at.UTC().Truncate(w.Length) }

// Left returns how much more fits into the period of now, of which item is the count.
func (w Window) Left(item table.Item) (int64, error) {
	var count struct {
		N int64 `json:"n"`
	}
	err := fault.Wrap(item.Decode(&count), "reading a count", table.ErrNotFound)
	return max(0, w.Most-count.N), err
}

// Reserve adds to those windows whose period has begun since the time before, all or none of them, in
// one write with other operations. If a window is full, the fault is TooMany; if it never has that
// much room, it is Invalid. If several are full, the first one says how long to wait. If no period
// has begun, nothing is written.
func Reserve(
	ctx context.Context, t table.Table, before, now time.Time, windows []Window, with ...table.Op,
) error {
	windows = slices.DeleteFunc(windows, func(w Window) bool {
		return !w.begin(before).Before(w.begin(now))
	})
	if len(windows) == 0 {
		return nil
	}
	ops := with
	for _, w := range windows {
		if w.Add > w.Most {
			return fault.New(
				fault.Invalid,
				"%s are limited to %d, but this asks for %d at once",
				w.What,
				w.Most,
				w.Add,
			)
		}
		add := table.Update(w.Key(now)).Add("n", w.Add).If(table.AtMost("n", w.Most-w.Add))
		ops = append(ops, add.Expire(w.End(now)).Relax())
	}
	err := t.Write(ctx, ops...)
	if refused, ok := errors.AsType[*table.ConditionError](err); ok && refused.Op >= len(with) {
		w := windows[refused.Op-len(with)]
		return fault.Wait(w.End(now).Sub(now), "%s are limited to %d", w.What, w.Most)
	}
	return err
}

// Release gives back what was reserved at these times. It makes one call to the table, or none if
// all those periods have ended.
func Release(
	ctx context.Context,
	t table.Table,
	now time.Time,
	windows []Window,
	reserved ...time.Time,
) error {
	counts := map[table.Key]int64{}
	for _, at := range reserved {
		for _, w := range windows {
			if w.End(at).After(now) {
				counts[w.Key(at)] += w.Add
			}
		}
	}
	var ops []table.Op
	for key, n := range counts {
		ops = append(ops, table.Update(key).Add("n", -n).If(table.Exists()).Relax())
	}
	if len(ops) == 0 {
		return nil
	}
	return t.Write(ctx, ops...)
}

// Hour is a count within an hour. Whoever stores it makes sure that nobody else does so at the same
// moment.
type Hour struct {
	Hour  int64 `json:"hour"` // since 1970
	Count int64 `json:"count"`
}

// Next returns the count with one more now, and how long that must wait if most are allowed: 0 if
// it need not.
func (h Hour) Next(now time.Time, most int64) (next Hour, wait time.Duration) {
	next = Hour{Hour: now.Unix() / 3600, Count: 1}
	if h.Hour == next.Hour {
		next.Count += h.Count
	}
	if next.Count > most {
		wait = time.Unix((next.Hour+1)*3600, 0).Sub(now)
	}
	return next, wait
}
