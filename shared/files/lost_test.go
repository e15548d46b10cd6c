package files_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
)

var errLost = errors.New("the answer got lost")

// lossy is a table that does what it is told, and then fails as if the answer
// had got lost on its way.
type lossy struct{ table.Table }

func (l lossy) Write(ctx context.Context, ops ...table.Op) error {
	return errors.Join(l.Table.Write(ctx, ops...), errLost)
}

func (l lossy) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	_, err := l.Table.WriteThenQuery(ctx, q, ops...)
	return table.Page{}, errors.Join(err, errLost)
}

// service returns the files on another table.
func (c caller) service(t table.Table) *files.Service {
	p := c.Data.Ports
	ports := p.Ports
	ports.Table = t
	return files.New(files.Config{Ports: ports, Blobs: p.Blobs, Outbox: file.Outbox(p), Retention: p.Retention})
}

func TestAWriteWhoseAnswerGotLostLosesNoBytes(t *testing.T) {
	t.Parallel()
	const content = "stored, though it was not answered"
	for what, act := range map[string]func(t *testing.T, c caller){
		"a commit":          func(t *testing.T, c caller) { c.commit(t, false) },
		"a commit and list": func(t *testing.T, c caller) { c.commit(t, true) },
		"a deletion": func(t *testing.T, c caller) {
			c.Put(c.bearer, "file=a", content)
			if _, err := c.service(lossy{c.Data.Table}).Delete(t.Context(), c.user(), 1); !errors.Is(err, errLost) {
				t.Errorf("it ends with %v", err)
			}
		},
		"a restoration": func(t *testing.T, c caller) {
			c.Put(c.bearer, "file=a", content)
			c.call("DELETE", "/files/1")
			if _, err := c.service(lossy{c.Data.Table}).Restore(t.Context(), c.user(), 1); !errors.Is(err, errLost) {
				t.Errorf("it ends with %v", err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			act(t, c)
			c.Clock.Advance(2 * time.Hour)
			c.sweep(time.Hour)
			c.sound(1)
		})
	}
}

// commit stores a file, whose answer gets lost.
func (c caller) commit(t *testing.T, list bool) {
	t.Helper()
	u, err := c.service(lossy{c.Data.Table}).Begin(t.Context(), c.name, c.user(), 7, files.Sending{})
	if err == nil {
		err = u.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("content"), Size: 7})
	}
	if err != nil {
		t.Fatal(err)
	}
	if list {
		_, err = u.CommitAndList(t.Context(), files.PageSize)
	} else {
		_, err = u.Commit(t.Context())
	}
	if !errors.Is(err, errLost) {
		t.Errorf("it ends with %v", err)
	}
}

// TestAnUploadWhoseCommitFailedIsClearedUp is one whose outcome stayed open and
// that was not stored: its bytes go with the sweep, its room with its time.
func TestAnUploadWhoseCommitFailedIsClearedUp(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(100))
	writes := 0
	c.Calls.Before("table.Write", func() error {
		if writes++; writes > 1 { // the first reserves
			return errors.New("away")
		}
		return nil
	})
	if w := c.upload("file=a", endless(60), 60); w.Code != 500 {
		t.Fatalf("the upload gives %d", w.Code)
	}
	c.Calls.Before("table.Write", nil)
	if n := len(c.Objects(blob.Files)); n != 1 || len(c.stored()) != 0 || c.user().Used != 60 {
		t.Fatalf("there are %d objects, %d records, %d bytes used", n, len(c.stored()), c.user().Used)
	}
	c.Clock.Advance(2 * time.Hour)
	c.sweep(time.Hour)
	c.sound(0)
	if u := c.user(); u.Used != 60 {
		t.Errorf("before its time %d bytes are used", u.Used)
	}
	c.Clock.Advance(23 * time.Hour)
	c.sweep(time.Hour)
	c.uses("after its time", 0)
}

// TestARefusedCommitLeavesNothing is one that is known not to have happened.
func TestARefusedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{table.ErrBusy, table.ErrFull, &table.ConditionError{}} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			c := begin(t, quota(100))
			writes := 0
			c.Calls.Before("table.Write", func() error {
				if writes++; writes == 2 { // after the reservation
					return refusal
				}
				return nil
			})
			if w := c.upload("file=a", endless(60), 60); w.Code < 400 {
				t.Errorf("the upload gives %d", w.Code)
			}
			c.uses("at once", 0)
			c.sound(0)
		})
	}
}
