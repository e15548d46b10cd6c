package notify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/table"
)

const ann = "ann@example.com"

// step changes an address's entry.
type step func(context.Context, table.Table, string) error

func add(why notify.SuppressReason, after time.Duration) step {
	return func(ctx context.Context, db table.Table, address string) error {
		return db.Write(ctx, notify.Suppress(" "+strings.ToUpper(address), why, "said", start().Add(after)))
	}
}

func stop(after time.Duration) step {
	return func(ctx context.Context, db table.Table, address string) error {
		return notify.StopMail(ctx, db, address, start().Add(after))
	}
}

func undo(ctx context.Context, db table.Table, address string) error {
	return notify.ResumeMail(ctx, db, address)
}

func allow(ctx context.Context, db table.Table, address string) error {
	_, _, err := notify.AllowMail(ctx, db, address)
	return err
}

// TestProvidersReasonAndOwnersWishAreIndependent also checks that the owner's wish does not stop PINs.
func TestProvidersReasonAndOwnersWishAreIndependent(t *testing.T) {
	t.Parallel()
	const later = time.Hour
	bounce, complaint := add(notify.AddressBounced, 0), add(notify.AddressComplained, later)
	bounced := notify.SuppressCause{Reason: notify.AddressBounced, Detail: "said", At: start().UnixMilli()}
	complained := notify.SuppressCause{
		Reason: notify.AddressComplained,
		Detail: "said",
		At:     start().Add(later).UnixMilli(),
	}
	stopped := notify.SuppressCause{Reason: notify.AddressStopped, At: start().UnixMilli()}
	stoppedLater := notify.SuppressCause{Reason: notify.AddressStopped, At: start().Add(later).UnixMilli()}
	type causes = []notify.SuppressCause
	tests := []struct {
		name  string
		steps []step
		want  causes
	}{
		{name: "nothing"},
		{name: "a bounce", steps: []step{bounce}, want: causes{bounced}},
		{name: "a complaint", steps: []step{complaint}, want: causes{complained}},
		{name: "a wish", steps: []step{stop(0)}, want: causes{stopped}},
		{name: "a bounce over a wish", steps: []step{stop(0), bounce}, want: causes{bounced, stopped}},
		{name: "a wish over a bounce", steps: []step{bounce, stop(later)}, want: causes{bounced, stoppedLater}},
		{name: "a wish that is repeated keeps its time", steps: []step{stop(0), stop(later)}, want: causes{stopped}},
		{
			name:  "a complaint takes a bounce's place",
			steps: []step{bounce, stop(0), complaint},
			want:  causes{complained, stopped},
		},
		{name: "an undo leaves the bounce", steps: []step{stop(0), bounce, undo}, want: causes{bounced}},
		{name: "an undo without a wish leaves the bounce", steps: []step{bounce, undo}, want: causes{bounced}},
		{name: "allowing leaves the wish", steps: []step{stop(0), bounce, allow}, want: causes{stopped}},
		{name: "allowing what is only stopped leaves the wish", steps: []step{stop(0), allow}, want: causes{stopped}},
		{name: "both ended, the wish first", steps: []step{stop(0), bounce, undo, allow}},
		{name: "both ended, the reason first", steps: []step{stop(0), bounce, allow, undo}},
	}
	for _, tt := range tests {
		p, f := newMachine(t), &provider{}
		db := p.table
		for _, do := range tt.steps {
			must(t, do(t.Context(), db, ann))
		}
		e, ok, err := notify.Suppressed(t.Context(), db, " "+strings.ToUpper(ann))
		if err != nil ||
			ok != (tt.want != nil) ||
			!slices.Equal(e.Causes(), tt.want) ||
			ok && (e.To != ann || e.V != 2) {
			t.Errorf("%s: %+v, %v, %v", tt.name, e, ok, err)
		}
		if items, err := db.GetMany(t.Context(), notify.SuppressedKey(ann)); err != nil || items[0].Found() != ok {
			t.Errorf("%s: the address is stored, %v", tt.name, err)
		}
		s := p.sender(db, f.take)
		for i, n := range []notify.Notice{p.receiptNotice(1), p.pinNotice()} {
			n.To = ann
			op := n.Op(p.clock.now(), fmt.Sprint(tt.name, i))
			must(t, db.Write(t.Context(), op))
			_, err := s.Handle(t.Context(), op.Key)
			must(t, err)
			onlyStopped := e.Refused == "" && n.Kind == notify.PIN
			if arrived := slices.Contains(f.taken, op.Key.SK); arrived != (!ok || onlyStopped) {
				t.Errorf("%s: the %s arrived: %v", tt.name, n.Kind, arrived)
			}
		}
	}
}

func TestReasonAddedWhileAnotherEndsIsKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		begin, comes, ends step
		want               notify.SuppressReason
	}{
		{
			name:  "a wish, while a bounce is allowed",
			begin: add(notify.AddressBounced, 0),
			comes: stop(0),
			ends:  allow,
			want:  notify.AddressStopped,
		},
		{
			name:  "a bounce, while a wish is undone",
			begin: stop(0),
			comes: add(notify.AddressBounced, 0),
			ends:  undo,
			want:  notify.AddressBounced,
		},
	}
	for _, tt := range tests {
		db := open(t)
		must(t, tt.begin(t.Context(), db, ann))
		b := &double{Table: db, read: func() { must(t, tt.comes(t.Context(), db, ann)) }}
		must(t, tt.ends(t.Context(), b, ann))
		e, _, err := notify.Suppressed(t.Context(), db, ann)
		if all := e.Causes(); err != nil || len(all) != 1 || all[0].Reason != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, e, err)
		}
	}
}

func TestAllowingAnAddressSaysWhetherThatChangedAnything(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, add(notify.AddressBounced, 0)(t.Context(), db, ann))
	for i, want := range []bool{true, false} {
		if was, left, err := notify.AllowMail(t.Context(), db, "aNN@example.com"); err != nil ||
			was != want ||
			left.Causes() != nil {
			t.Errorf("time %d: %v, %+v, %v", i+1, was, left, err)
		}
	}
}

func TestListHasEachAddressOnceUnderAKeyThatHidesIt(t *testing.T) {
	t.Parallel()
	db := open(t)
	var want, got []string
	for i := range 30 {
		address := fmt.Sprintf("user%02d@example.com", i)
		want = append(want, address)
		if key := notify.SuppressedKey(address); strings.Contains(key.String(), "user") || len(key.SK) != 43 {
			t.Errorf("%s is stored under %v", address, key)
		}
		must(t, add(notify.AddressBounced, 0)(t.Context(), db, address))
		must(t, stop(0)(t.Context(), db, address))
	}
	for e, err := range notify.AllSuppressed(t.Context(), db) {
		if got = append(got, e.To); err != nil || len(e.Causes()) != 2 {
			t.Errorf("%+v, %v", e, err)
		}
	}
	slices.Sort(got)
	expect.Equal(t, "the list", got, want)
}
