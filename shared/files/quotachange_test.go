package files_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// interrupted is a table before whose first write something else happens.
type interrupted struct {
	table.Table
	once   *sync.Once
	do     func()
	checks *int // in all writes
}

func (i interrupted) Write(ctx context.Context, ops ...table.Op) error {
	i.once.Do(i.do)
	for _, op := range ops {
		if op.Kind == table.KindCheck {
			*i.checks++
		}
	}
	return i.Table.Write(ctx, ops...)
}

// give gives the caller a quota as ferry user edit does; first may happen in between.
func (c caller) give(quota int64, first func()) error {
	c.Helper()
	users := auth.NewUsers(c.Data.Table, c.Data.Ports.Now)
	before := c.user()
	after := before
	after.Quota = quota
	var err error
	if before.Quota == 0 {
		after.Used, err = file.Service(c.Data.Ports).Used(c.Context(), before)
		c.must(err)
	}
	first()
	return users.Edit(c.Context(), before, after)
}

func nothing() {}

// meanwhile returns a service in whose first write to the table something else happens.
func (c caller) meanwhile(do func(), wait time.Duration) (*files.Service, *int) {
	p, checks := c.Data.Ports.Clone(), 0
	p.Table, p.CountWait, p.Mover = interrupted{c.Data.Table, &sync.Once{}, do, &checks}, wait, nil
	return file.Service(p), &checks
}

// TestAQuotaThatIsGivenMeanwhileMissesNothing: who has read that there is none must not
// change what the quota counts.
func TestAQuotaThatIsGivenMeanwhileMissesNothing(t *testing.T) {
	t.Parallel()
	t.Run("an upload", func(t *testing.T) {
		t.Parallel()
		for _, cloud := range []time.Duration{0, time.Second} {
			c := newCaller(t)
			s, checks := c.meanwhile(func() { c.must(c.give(100, nothing)) }, cloud)
			u := c.beginAt(s, "12345")
			c.Clock.Advance(2 * time.Second)
			if _, err := u.Commit(t.Context(), 0); !fault.Is(err, fault.Conflict) || *checks != 1 {
				t.Errorf("the commit made %d checks, and gave %v", *checks, err)
			}
			c.wantUsed("after the upload", 0)
			if w := c.upload("file=a", unsized(5), 5); w.Code != 200 {
				t.Errorf("another one has status %d", w.Code)
			}
			c.wantUsed("after another one", 5)
			c.wantConsistent(1)
		}
	})
	t.Run("a session", func(t *testing.T) {
		t.Parallel()
		c := newCaller(t)
		s, _ := c.meanwhile(func() { c.must(c.give(100, nothing)) }, 0)
		open, err := file.Service(c.Data.Ports).BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 4}, nil)
		c.must(err)
		_, err = s.WritePart(t.Context(), open, 1, strings.NewReader("four"), nil)
		c.must(err)
		if _, err := s.Complete(t.Context(), open, nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("the completion gave %v", err)
		}
		_, err = s.Complete(t.Context(), open, nil)
		c.must(err)
		c.wantUsed("after the second completion", 4)
	})
	t.Run("a purge", func(t *testing.T) {
		t.Parallel()
		c := newCaller(t)
		for range 2 {
			c.upload("file=a", unsized(5), 5)
		}
		_, err := file.Service(c.Data.Ports).Delete(t.Context(), c.user(), 1)
		c.must(err)
		s, _ := c.meanwhile(func() { c.must(c.give(100, nothing)) }, 0)
		c.must(s.Purge(t.Context(), c.user(), 1))
		c.wantUsed("after the purge", 5)
	})
}

// TestAQuickCommitPaysForNoCheck: in a shared table each would cost two write units.
func TestAQuickCommitPaysForNoCheck(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	s, checks := c.meanwhile(nothing, time.Second)
	now := s.Now()
	s.Now = func() time.Time { return now }
	u := c.beginAt(s, "12345")
	c.must(failure(u.Commit(t.Context(), 0)))
	c.must(failure(s.Delete(t.Context(), c.user(), 1)))
	c.must(s.Purge(t.Context(), c.user(), 1))
	if *checks != 0 {
		t.Errorf("there were %d checks", *checks)
	}
}

// TestAQuotaThatWasTakenAndIsGivenAgainMissesNothing: an upload that began under the first
// one counts its bytes while those of the other files are added up.
func TestAQuotaThatWasTakenAndIsGivenAgainMissesNothing(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 7} {
		c := newCaller(t, quota(100))
		if before > 0 {
			c.upload("file=a", unsized(before), int64(before))
		}
		u := c.beginUpload("12345")
		c.must(c.give(0, nothing))
		err := c.give(100, func() { c.must(failure(u.Commit(t.Context(), 0))) })
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("the quota is given: %v", err)
		}
		c.must(c.give(100, nothing))
		c.wantUsed("then", int64(before)+5)
	}
}
