package notify_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// limitStep is something that a user asks for at some time.
type limitStep struct {
	at   string // days from the first, and the time of day
	do   func(*testing.T, notify.Outbox) error
	wait time.Duration // 0 if it passes
}

func reserve(user string, to ...string) func(*testing.T, notify.Outbox) error {
	return func(t *testing.T, o notify.Outbox) error {
		_, err := o.Reserve(t.Context(), files.By{User: user}, to, time.Time{})
		return err
	}
}

// reserveSince reserves again for alice what was reserved earlier, with a mark.
func reserveSince(since string, mark table.Op, to ...string) func(*testing.T, notify.Outbox) error {
	return func(t *testing.T, o notify.Outbox) error {
		_, err := o.Reserve(t.Context(), files.By{User: "alice"}, to, clockAt(since), func(time.Time) table.Op {
			return mark
		})
		return err
	}
}

// release gives back what alice reserved for an address.
func release(to string, reserved ...string) func(*testing.T, notify.Outbox) error {
	return func(t *testing.T, o notify.Outbox) error {
		var at []time.Time
		for _, text := range reserved {
			at = append(at, clockAt(text))
		}
		return o.Release(t.Context(), at, files.By{User: "alice"}, []string{to})
	}
}

func mark() table.Op { return table.Update(table.Key{PK: "mark", SK: "mark"}).Add("n", 1) }

func TestNoticesAreBoundedInEachWindow(t *testing.T) {
	t.Parallel()
	const ann, bob, number = "ann@example.com", "bob@example.com", "+393401234567"
	toAnn, toBob, toBoth := reserve("alice", ann), reserve("alice", bob), reserve("alice", ann, number)
	for name, c := range map[string]struct {
		limits notify.Limits
		steps  []limitStep
	}{
		"nothing is bounded by default": {notify.Limits{}, []limitStep{
			{at: "0 10:00", do: toAnn}, {at: "0 10:00", do: toAnn}, {at: "0 10:00", do: release(ann, "0 10:00")},
		}},
		"an hour has a limit, and the next starts again": {notify.Limits{PerHour: 2}, []limitStep{
			{
				at: "0 10:10",
				do: toAnn,
			}, {
				at: "0 10:20",
				do: toBob,
			}, {at: "0 10:45", do: toAnn, wait: 15 * time.Minute}, {at: "0 11:00", do: toAnn},
		}},
		"each user has separate windows, of which the longest counts": {notify.Limits{
			PerHour: 1,
			PerDay:  1,
		}, []limitStep{
			{
				at: "0 10:00",
				do: toAnn,
			}, {at: "0 10:00", do: reserve("bob", ann)}, {at: "0 10:00", do: reserve("bob", ann), wait: 14 * time.Hour},
		}},
		"a recipient has one limit a day for all senders": {notify.Limits{PerRecipient: 1}, []limitStep{
			{
				at: "0 10:00",
				do: toAnn,
			}, {
				at:   "0 23:00",
				do:   reserve("bob", ann),
				wait: time.Hour,
			}, {at: "0 23:00", do: reserve("bob", bob)}, {at: "1 00:00", do: reserve("bob", ann)},
		}},
		"case and the form of a domain do not matter": {notify.Limits{PerRecipient: 1}, []limitStep{
			{
				at: "0 23:00",
				do: reserve("alice", "ann@xn--bcher-kva.example"),
			}, {at: "0 23:00", do: reserve("bob", "Ann@Bücher.example"), wait: time.Hour},
		}},
		"each recipient counts for the user": {notify.Limits{PerHour: 3}, []limitStep{
			{
				at: "0 10:30",
				do: toBoth,
			}, {at: "0 10:30", do: toBoth, wait: 30 * time.Minute}, {at: "0 10:30", do: toAnn},
		}},
		"a refused request counts nowhere": {notify.Limits{PerHour: 2, PerRecipient: 1}, []limitStep{
			{
				at: "0 10:30",
				do: toAnn,
			}, {
				at:   "0 10:30",
				do:   reserve("alice", bob, ann),
				wait: 13*time.Hour + 30*time.Minute,
			}, {at: "0 10:30", do: toBob},
		}},
		"without a recipient nothing is counted": {notify.Limits{PerHour: 1}, []limitStep{
			{at: "0 10:30", do: reserve("alice")}, {at: "0 10:30", do: reserve("alice")}, {at: "0 10:30", do: toAnn},
		}},
		"what is reserved again counts in another hour, and not again in the day": {notify.Limits{
			PerHour: 2,
			PerDay:  2,
		}, []limitStep{
			{
				at: "0 11:00",
				do: reserveSince("0 10:50", mark(), ann),
			}, {at: "0 11:00", do: reserveSince("0 10:50", mark(), ann)},
			{at: "0 11:00", do: reserveSince("0 10:50", mark(), ann), wait: time.Hour}, {at: "0 12:00", do: toBoth},
		}},
		"what is released does not count": {notify.Limits{PerHour: 2, PerDay: 3, PerRecipient: 2}, []limitStep{
			{at: "0 10:50", do: toAnn}, {at: "0 10:50", do: toAnn}, {at: "0 10:50", do: toBob, wait: 10 * time.Minute},
			{at: "0 10:50", do: release(ann, "0 10:50", "0 10:50")},
			{at: "0 10:50", do: toAnn}, {at: "0 10:50", do: toBob}, {at: "0 10:50", do: toBob, wait: 10 * time.Minute},
			{at: "0 11:10", do: release(bob, "0 10:50")}, // the hour is over, and the day is not
			{
				at: "0 11:10",
				do: toBob,
			}, {at: "0 11:10", do: toBob}, {at: "0 11:10", do: toAnn, wait: 12*time.Hour + 50*time.Minute},
			{at: "2 00:00", do: release(bob, "0 10:50")}, // the day is over
		}},
	} {
		var now time.Time
		counter := notify.Outbox{Table: open(t), Now: func() time.Time { return now }, Limits: c.limits}
		for i, s := range c.steps {
			now = clockAt(s.at)
			err := s.do(t, counter)
			if s.wait == 0 && err != nil {
				t.Fatalf("%s, step %d: %v", name, i, err)
			}
			if s.wait != 0 && (!fault.Is(err, fault.TooMany) || fault.Of(err).After != s.wait) {
				t.Fatalf("%s, step %d: %+v, want to wait for %v", name, i, err, s.wait)
			}
		}
	}
}

func TestReservingAgainIsMarkedOnceAWindowHasBegunSince(t *testing.T) {
	t.Parallel()
	var now time.Time
	tab := open(t)
	counter := notify.Outbox{
		Table:  tab,
		Now:    func() time.Time { return now },
		Limits: notify.Limits{PerHour: 1, PerDay: 1},
	}
	for _, c := range []struct {
		at    string
		marks int64 // after that
	}{{"0 10:59", 0}, {"0 10:50", 0}, {"0 11:00", 1}, {"0 11:00", 1}, {"0 12:00", 2}} {
		now = clockAt(c.at)
		err := reserveSince("0 10:50", mark(), ann)(t, counter)
		var stored struct{ N int64 }
		_ = tab.Get(t.Context(), mark().Key, &stored)
		if stored.N != c.marks || err != nil && !fault.Is(err, fault.TooMany) {
			t.Errorf("at %s there are %d marks, %v", c.at, stored.N, err)
		}
	}
	now = clockAt("1 12:00")
	if err := reserveSince("0 10:50", mark().If(table.AtMost("n", 1)), ann)(
		t,
		counter,
	); !errors.Is(err, table.ErrCondition) {
		t.Errorf("with a mark that is refused: %v", err)
	}
	must(t, reserve("alice", ann)(t, counter)) // what was refused has not counted
}

func TestMoreNoticesThanALimitAllowsAreInvalid(t *testing.T) {
	t.Parallel()
	counter := notify.Outbox{Table: open(t), Now: time.Now, Limits: notify.Limits{PerHour: 1}}
	err := reserve("alice", "ann@example.com", "+393401234567")(t, counter)
	expect.Fault(t, "too many notices", err, fault.Invalid)
}

func TestConcurrentReservationsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	counter := notify.Outbox{Table: open(t), Now: start, Limits: notify.Limits{PerHour: 20, PerRecipient: 100}}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := reserve("alice", ann)(t, counter)
			if err == nil {
				passed.Add(1)
			} else if !fault.Is(err, fault.TooMany) {
				t.Error(err)
			}
		})
	}
	if wg.Wait(); passed.Load() != 20 {
		t.Errorf("%d passed, want 20", passed.Load())
	}
}

func TestCountsHoldNoAddressAndExpireWithTheirWindow(t *testing.T) {
	t.Parallel()
	db, now := open(t), clockAt("0 10:00")
	counter := notify.Outbox{
		Table:  db,
		Now:    func() time.Time { return now },
		Limits: notify.Limits{PerHour: 5, PerDay: 5, PerRecipient: 5},
	}
	must(t, reserve("alice", ann)(t, counter))
	for _, c := range []struct {
		when string
		left int
	}{{"0 10:59", 3}, {"0 12:00", 2}, {"1 00:01", 0}} {
		_, err := db.DeleteExpired(t.Context(), clockAt(c.when))
		must(t, err)
		left := 0
		err = db.Scan(t.Context(), func(item table.Item) error {
			left++
			if strings.Contains(item.Key.String()+string(item.Raw), "example") {
				t.Errorf("%v holds an address", item.Key)
			}
			return nil
		})
		if err != nil || left != c.left {
			t.Errorf("at %s there are %d counts, %v, want %d", c.when, left, err, c.left)
		}
	}
}

// clockAt reads a number of days after the first and a time of day.
func clockAt(text string) time.Time {
	clock, _ := time.Parse("15:04", text[2:])
	return time.Date(2026, 11, 21+int(text[0]-'0'), clock.Hour(), clock.Minute(), 0, 0, time.UTC)
}

func open(t *testing.T) *sqlite.DB { return newMachine(t).table }
