package notify_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

func TestNoticesAreBoundedInEachWindow(t *testing.T) {
	t.Parallel()
	const ann, bob, number = "ann@example.com", "bob@example.com", "+393401234567"
	type step struct {
		at   string // days from the first, and the time of day
		user string
		to   []string
		wait time.Duration // 0 if it passes
	}
	for name, c := range map[string]struct {
		most  notify.Limits
		steps []step
	}{
		"nothing is bounded by default": {notify.Limits{}, []step{
			{"0 10:00", "alice", []string{ann}, 0}, {"0 10:00", "alice", []string{ann}, 0},
		}},
		"an hour has a limit, and the next starts again": {notify.Limits{PerHour: 2}, []step{
			{"0 10:10", "alice", []string{ann}, 0}, {"0 10:20", "alice", []string{bob}, 0},
			{"0 10:45", "alice", []string{ann}, 15 * time.Minute}, {"0 11:00", "alice", []string{ann}, 0},
		}},
		"a day has a limit, and the next starts again": {notify.Limits{PerDay: 1}, []step{
			{"0 10:00", "alice", []string{ann}, 0}, {"0 22:00", "alice", []string{bob}, 2 * time.Hour}, {"1 00:00", "alice", []string{bob}, 0},
		}},
		"each user has separate windows": {notify.Limits{PerHour: 1, PerDay: 1}, []step{
			{"0 10:00", "alice", []string{ann}, 0}, {"0 10:00", "bob", []string{ann}, 0}, {"0 10:00", "bob", []string{ann}, 14 * time.Hour},
		}},
		"a recipient has one limit a day for all senders": {notify.Limits{PerRecipient: 1}, []step{
			{"0 10:00", "alice", []string{ann}, 0}, {"0 23:00", "bob", []string{ann}, time.Hour}, {"0 23:00", "bob", []string{bob}, 0}, {"1 00:00", "bob", []string{ann}, 0},
		}},
		"the case of an address does not matter": {notify.Limits{PerRecipient: 1}, []step{
			{"0 23:00", "alice", []string{ann}, 0}, {"0 23:00", "alice", []string{"Ann@Example.COM"}, time.Hour},
		}},
		"each recipient counts for the user": {notify.Limits{PerHour: 3}, []step{
			{"0 10:30", "alice", []string{ann, number}, 0}, {"0 10:30", "alice", []string{ann, number}, 30 * time.Minute}, {"0 10:30", "alice", []string{ann}, 0},
		}},
		"a refused request counts nowhere": {notify.Limits{PerHour: 2, PerRecipient: 1}, []step{
			{"0 10:30", "alice", []string{ann}, 0}, {"0 10:30", "alice", []string{bob, ann}, 13*time.Hour + 30*time.Minute}, {"0 10:30", "alice", []string{bob}, 0},
		}},
		"if several windows are full, the longest counts": {notify.Limits{PerHour: 1, PerDay: 1}, []step{
			{"0 10:30", "alice", []string{ann}, 0}, {"0 10:30", "alice", []string{bob}, 13*time.Hour + 30*time.Minute},
		}},
		"without a recipient nothing is counted": {notify.Limits{PerHour: 1}, []step{
			{"0 10:30", "alice", nil, 0}, {"0 10:30", "alice", nil, 0}, {"0 10:30", "alice", []string{ann}, 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now time.Time
			counter := notify.Outbox{Table: open(t), Now: func() time.Time { return now }, Most: c.most}
			for i, s := range c.steps {
				now = clockAt(s.at)
				err := take(t, counter, s.user, s.to...)
				if s.wait == 0 && err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if s.wait != 0 && (!fault.Is(err, fault.TooMany) || fault.Of(err).After != s.wait) {
					t.Fatalf("step %d: %+v, want to wait for %v", i, err, s.wait)
				}
			}
		})
	}
}

func take(t *testing.T, c notify.Outbox, user string, to ...string) error {
	t.Helper()
	_, err := c.Reserve(t.Context(), files.By{User: user}, to)
	return err
}

func takeAgain(t *testing.T, c notify.Outbox, taken time.Time, mark table.Op, user string, to ...string) error {
	t.Helper()
	_, err := c.ReserveSince(t.Context(), taken, func(time.Time) table.Op { return mark }, files.By{User: user}, to)
	return err
}

func TestReserveAgainCountsInWindowsThatHaveBegunSince(t *testing.T) {
	t.Parallel()
	const ann = "ann@example.com"
	var now time.Time
	tab := open(t)
	counter := notify.Outbox{Table: tab, Now: func() time.Time { return now }, Most: notify.Limits{PerHour: 2, PerDay: 2}}
	type flag struct {
		N int64 `json:"n"`
	}
	mark := table.Update(table.Key{PK: "mark", SK: "mark"}).Add("n", 1)
	marked := func(want int64) {
		t.Helper()
		var f flag
		if err := tab.Get(t.Context(), mark.Key, &f); f.N != want {
			t.Fatalf("it is marked %d times, want %d (%v)", f.N, want, err)
		}
	}
	begun := clockAt("0 10:50")
	for _, later := range []string{"0 10:59", "0 10:50"} {
		now = clockAt(later)
		must(t, takeAgain(t, counter, begun, mark, "alice", ann))
		marked(0)
	}
	now = clockAt("0 11:00") // another hour of the same day
	for i := range int64(2) {
		must(t, takeAgain(t, counter, begun, mark, "alice", ann))
		marked(i + 1)
	}
	if err := takeAgain(t, counter, begun, mark, "alice", ann); !fault.Is(err, fault.TooMany) || fault.Of(err).After != time.Hour {
		t.Fatalf("the third of an hour: %+v", err)
	}
	marked(2)
	now = clockAt("0 12:00")
	if err := take(t, counter, "alice", ann, "bob@example.com"); err != nil {
		t.Fatalf("the day has counted the same notice twice: %v", err)
	}
	now = clockAt("1 12:00")
	if err := takeAgain(t, counter, begun, mark.If(table.AtMost("n", 1)), "alice", ann); !errors.Is(err, table.ErrCondition) {
		t.Fatalf("with a mark that is refused: %v", err)
	}
	if err := take(t, counter, "alice", ann, "bob@example.com"); err != nil {
		t.Fatalf("a refused request has counted: %v", err)
	}
}

func TestReleasedNoticesAreNotCounted(t *testing.T) {
	t.Parallel()
	const ann, bob = "ann@example.com", "bob@example.com"
	now := clockAt("0 10:50")
	counter := notify.Outbox{Table: open(t), Now: func() time.Time { return now }, Most: notify.Limits{PerHour: 2, PerDay: 3, PerRecipient: 2}}
	takeOne := func(to string) error { return take(t, counter, "alice", to) }
	must(t, errors.Join(takeOne(ann), takeOne(ann)))
	if err := takeOne(bob); !fault.Is(err, fault.TooMany) {
		t.Fatalf("a third in the hour: %v", err)
	}
	must(t, counter.Release(t.Context(), []time.Time{now, now}, files.By{User: "alice"}, []string{ann}))
	if err := errors.Join(takeOne(ann), takeOne(bob)); err != nil {
		t.Fatalf("two, after as many were given back: %v", err)
	}
	if err := takeOne(bob); !fault.Is(err, fault.TooMany) {
		t.Fatalf("a third in the hour: %v", err)
	}
	taken := now
	now = clockAt("0 11:10") // the hour is over, and the day is not
	must(t, counter.Release(t.Context(), []time.Time{taken}, files.By{User: "alice"}, []string{bob}))
	if err := errors.Join(takeOne(bob), takeOne(bob)); err != nil {
		t.Fatalf("two in the next hour, with one given back to the day: %v", err)
	}
	if err := takeOne(ann); !fault.Is(err, fault.TooMany) {
		t.Fatalf("a fourth in the day: %v", err)
	}
	now = clockAt("2 00:00")
	if err := counter.Release(t.Context(), []time.Time{taken}, files.By{User: "alice"}, []string{bob}); err != nil {
		t.Fatalf("when the day is over: %v", err)
	}
	if err := (notify.Outbox{Table: counter.Table, Now: counter.Now}).Release(t.Context(), []time.Time{now}, files.By{User: "alice"}, []string{bob}); err != nil {
		t.Fatalf("where nothing is bounded: %v", err)
	}
}

func TestMoreNoticesThanALimitAllowsAreInvalid(t *testing.T) {
	t.Parallel()
	counter := notify.Outbox{Table: open(t), Now: time.Now, Most: notify.Limits{PerHour: 1}}
	if err := take(t, counter, "alice", "ann@example.com", "+393401234567"); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want an Invalid fault", err)
	}
}

func TestConcurrentReservationsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	now := clockAt("0 10:00")
	counter := notify.Outbox{Table: open(t), Now: func() time.Time { return now }, Most: notify.Limits{PerHour: 20, PerRecipient: 100}}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := take(t, counter, "alice", "ann@example.com")
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
	counter := notify.Outbox{Table: db, Now: func() time.Time { return now }, Most: notify.Limits{PerHour: 5, PerDay: 5, PerRecipient: 5}}
	must(t, take(t, counter, "alice", "ann@example.com"))
	for _, c := range []struct {
		when string
		left int
	}{{"0 10:59", 3}, {"0 12:00", 2}, {"1 00:01", 0}} {
		if _, err := db.DeleteExpired(t.Context(), clockAt(c.when)); err != nil {
			t.Fatal(err)
		}
		left := 0
		err := db.Scan(t.Context(), func(item table.Item) error {
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

func open(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}
