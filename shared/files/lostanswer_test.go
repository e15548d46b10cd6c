package files_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
)

var errLost = errors.New("the answer was lost")

// lossyTable is a table that does each write and then returns an error, as if the
// answer had been lost.
type lossyTable struct{ table.Table }

func (l lossyTable) Write(ctx context.Context, ops ...table.Op) error {
	return errors.Join(l.Table.Write(ctx, ops...), errLost)
}

func (l lossyTable) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	_, err := l.Table.WriteThenQuery(ctx, q, ops...)
	return table.Page{}, errors.Join(err, errLost)
}

// service returns the caller's service with another table.
func (c caller) service(t table.Table) *files.Service {
	p := c.Data.Ports.Clone()
	p.Table, p.Mover = t, nil
	return file.Service(p)
}

func TestWriteWhoseAnswerIsLostLosesNoBytes(t *testing.T) {
	t.Parallel()
	const content = "stored, but the answer was lost"
	for what, act := range map[string]func(t *testing.T, c caller){
		"an upload commits":           func(t *testing.T, c caller) { c.commit(t, 0) },
		"an upload commits and lists": func(t *testing.T, c caller) { c.commit(t, files.PageSize) },
		"a file is deleted": func(t *testing.T, c caller) {
			c.put("file=a", content)
			if _, err := c.service(lossyTable{c.Data.Table}).Delete(t.Context(), c.user(), 1); !errors.Is(err, errLost) {
				t.Errorf("the call gave %v, want %v", err, errLost)
			}
		},
		"a file is restored": func(t *testing.T, c caller) {
			c.put("file=a", content)
			c.call("DELETE", "/files/1")
			if _, err := c.service(lossyTable{c.Data.Table}).Restore(t.Context(), c.user(), 1); !errors.Is(err, errLost) {
				t.Errorf("the call gave %v, want %v", err, errLost)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			act(t, c)
			c.Clock.Advance(2 * time.Hour)
			c.repair()
			c.wantConsistent(1)
		})
	}
}

// commit stores a file and loses the table's answer.
func (c caller) commit(t *testing.T, list int) {
	t.Helper()
	u := c.beginAt(c.service(lossyTable{c.Data.Table}), "content")
	if _, err := u.Commit(t.Context(), list); !errors.Is(err, errLost) {
		t.Errorf("the call gave %v, want %v", err, errLost)
	}
}

// TestSweepClearsUpAfterFailedCommit lets a commit fail with an unknown outcome.
// The sweep removes the bytes after the grace period.
func TestSweepClearsUpAfterFailedCommit(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	c.Calls.Before("table.Write", func() error { return errors.New("away") })
	if w := c.upload("file=a", unsized(60), 60); w.Code != 500 {
		t.Fatalf("the upload gave status %d, want 500", w.Code)
	}
	c.Calls.Before("table.Write", nil)
	if n := len(c.Objects(blob.Files)); n != 1 || len(c.stored()) != 0 || c.user().Used != 0 {
		t.Fatalf("there are %d objects, %d records and %d bytes in use, want 1, 0 and 0", n, len(c.stored()), c.user().Used)
	}
	c.Clock.Advance(31 * day)
	c.sweep(time.Hour)
	c.wantConsistent(0)
}

func TestRefusedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{table.ErrBusy, table.ErrFull, &table.ConditionError{}} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, quota(100))
			c.Calls.Before("table.Write", func() error { return refusal })
			if w := c.upload("file=a", unsized(60), 60); w.Code < 400 {
				t.Errorf("the upload gave status %d, want an error", w.Code)
			}
			c.wantUsed("after the refusal", 0)
			c.wantConsistent(0)
		})
	}
}
