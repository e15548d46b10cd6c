package files_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

func quota(n int64) func(*users.User) { return func(u *users.User) { u.Quota = n } }

// wantUsed checks the caller's recorded use, the size of the stored files, and
// that no reservation is left.
func (c caller) wantUsed(what string, want int64) {
	c.Helper()
	if used, sum := c.user().Used, c.sum(); used != want || sum != want {
		c.Errorf("%s: the record says %d bytes and %d are stored, want %d", what, used, sum, want)
	}
	expect.Equal(c.TB, what+": reservations", len(c.Partitions("reserved#")), 0)
}

// unsized returns a body of n bytes that does not state its length.
func unsized(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }

func TestUploadOverQuotaIsRefused(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	for _, k := range []struct {
		what   string
		body   io.Reader
		length int64
		status int
		used   int64
	}{
		{"a file that does not fit", unsized(101), 101, 413, 0},
		{"a file of unknown length that does not fit", unsized(101), -1, 413, 0},
		{"a file that fits", unsized(60), 60, 200, 60},
		{"a second file that does not fit", unsized(41), 41, 413, 60},
		{"a second file of unknown length that does not fit", unsized(1000), -1, 413, 60},
		{"a second file of unknown length that fits", unsized(30), -1, 200, 90},
		{"a file that is shorter than stated", unsized(5), 10, 400, 90},
		{"a file that just fits", unsized(10), -1, 200, 100},
		{"an empty file when there is no room", unsized(0), 0, 200, 100},
		{"an empty file of unknown length when there is no room", unsized(0), -1, 200, 100},
		{"one byte too many", unsized(1), 1, 413, 100},
		{"one byte too many of unknown length", unsized(1), -1, 413, 100},
	} {
		w := c.upload("file=a", k.body, k.length)
		expect.Equal(t, k.what, w.Code, k.status)
		c.wantUsed(k.what, k.used)
	}
	c.wantConsistent(5)
}

func TestQuotaLimitsTheWholeForm(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(1000))
	const head = "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n"
	form := func(sizes ...int) string {
		var s strings.Builder
		for _, n := range sizes {
			s.WriteString(head + strings.Repeat("x", n) + "\r\n")
		}
		return s.String() + "--b--\r\n"
	}
	for _, k := range []struct {
		what   string
		sizes  []int
		status int
		used   int64
	}{
		{"three files", []int{100, 200, 0}, 200, 300},
		{"two files that are too long together", []int{400, 400}, 413, 300},
		{"two files that fit", []int{300, 400}, 200, 1000},
	} {
		r := c.Request("POST", "/upload", io.MultiReader(strings.NewReader(form(k.sizes...))),
			"Authorization", "Bearer "+c.bearer, "Content-Type", "multipart/form-data; boundary=b")
		expect.Equal(t, k.what, r.StatusCode, k.status)
		c.wantUsed(k.what, k.used)
	}
	c.wantConsistent(5)
}

// TestQuotaHoldsForConcurrentUploads has uploads that state their length, and others.
func TestQuotaHoldsForConcurrentUploads(t *testing.T) {
	t.Parallel()
	const size, fit = 30, 33
	c := newCaller(t, quota(size*fit+size-1))
	var stored atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			switch w := c.upload("file=a", unsized(size), []int64{size, -1}[i%2]); w.Code {
			case 200:
				stored.Add(1)
			case 413:
			default:
				t.Errorf("an upload gave status %d (%s)", w.Code, w.Header().Get("Ferry-Error"))
			}
		})
	}
	wg.Wait()
	expect.Equal(t, "stored uploads", stored.Load(), fit)
	c.wantUsed("after all uploads", size*fit)
	c.wantConsistent(fit)
}

// TestASlowUploadKeepsNoRoomFromOthers uploads while another user's upload to the same
// area is under way, and ends that one last.
func TestASlowUploadKeepsNoRoomFromOthers(t *testing.T) {
	t.Parallel()
	for what, length := range map[string]int64{"its length is stated": 7, "its length is unknown": -1} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, quota(10))
			c.AddUser("bob", password)
			slow, err := c.Service.Files().Begin(t.Context(), "alice", files.By{User: "bob"}, length, files.Sending{})
			c.must(err)
			c.wantUsed("before the bytes arrive", 0)
			if w := c.upload("file=a", unsized(10), 10); w.Code != 200 {
				t.Fatalf("the owner's upload gave status %d", w.Code)
			}
			err = slow.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("content"), Size: length})
			if err == nil {
				_, err = slow.Commit(t.Context(), 0)
			}
			if !fault.Is(err, fault.TooLarge) || strings.ContainsAny(err.Error(), "0123456789") {
				t.Errorf("the slow upload gave %v, want TooLarge without a number", err)
			}
			c.wantUsed("at the end", 10)
			c.wantConsistent(1)
		})
	}
}

func TestFileTakesRoomUntilItIsPurged(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	c.put("file=a", strings.Repeat("x", 60))
	for _, request := range []string{"DELETE /files/1", "POST /files/1/restore", "DELETE /files/1"} {
		c.ask(request)
		c.wantUsed("after "+request, 60)
	}
	c.Clock.Advance(91 * day)
	c.sweep(time.Hour)
	expect.Equal(t, "bytes in use after the purge", c.user().Used, 0)
	c.bearer = c.Login("alice", password)
	c.put("file=b", strings.Repeat("x", 100))
	c.wantUsed("after the next upload", 100)
}

func TestQuotaOfAnotherUserIsNotDisclosed(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.AddUser("bob", password, quota(100))
	c.As("bob").Upload("file=a", strings.Repeat("x", 63))
	var said []string
	for _, length := range []int64{50, -1} {
		w := c.upload("file=a&d=bob", unsized(50), length)
		expect.Equal(t, "a file too large for bob", w.Code, 413)
		said = append(said, w.Header().Get("Ferry-Error"))
	}
	if said[0] == "" || said[0] != said[1] || strings.ContainsAny(said[0], "0123456789") {
		t.Errorf("the faults are %q, want one text for both, without a number", said)
	}
	expect.Equal(t, "a file that fits", c.upload("file=a&d=bob", unsized(37), 37).Code, 200)
	if u, err := c.Users.Get(t.Context(), "bob"); err != nil || u.Used != 100 || fmt.Sprint(c.user().Used) != "0" {
		t.Errorf("bob uses %d, %v; alice %d", u.Used, err, c.user().Used)
	}
}

// TestReservationsOfRemovedUserAreNotChargedToTheNext removes a user during
// uploads to that user, and gives the name to another.
func TestReservationsOfRemovedUserAreNotChargedToTheNext(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	c.AddUser("bob", password)
	service := c.Service.Files()
	plan := files.Plan{Owner: "alice", Name: "b", Length: 30}
	c.must(failure(service.BeginSession(t.Context(), files.By{User: "bob"}, plan, nil)))
	slow, err := service.Begin(t.Context(), "alice", files.By{User: "bob"}, 7, files.Sending{})
	c.must(err)
	c.must(slow.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("content"), Size: 7}))
	c.must(c.Users.Disable(t.Context(), "alice"))
	c.must(failure(service.RemoveAll(t.Context(), "alice")))
	expect.Equal(t, "bytes in use after RemoveAll", c.user().Used, 0)
	c.must(c.Users.Remove(t.Context(), "alice"))
	c.AddUser("alice", password, quota(50))
	expect.Fault(t, "the upload to the removed user", failure(slow.Commit(t.Context(), 0)), fault.TooLarge)
	c.wantUsed("after the commit", 0)
	c.Clock.Advance(25 * time.Hour)
	c.sweep(time.Hour)
	c.wantUsed("after a day", 0)
	c.wantConsistent(0)
}

// TestUseIsKnownWhenAQuotaComesLater gives a quota to a user who has files in both areas
// and room reserved, and refuses it while a file comes.
func TestUseIsKnownWhenAQuotaComesLater(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	for _, n := range []int{60, 30} {
		if w := c.upload("file=a", unsized(n), int64(n)); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	users, service := &users.Service{Table: c.Data.Table, Now: c.Data.Ports.Now}, c.Service.Files()
	open, err := service.BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 4}, nil)
	c.must(err)
	c.must(failure(service.Delete(t.Context(), c.user(), 1)))
	limit := func() error {
		before := c.user()
		after := before
		var err error
		after.Used, err = service.Used(t.Context(), before)
		c.must(err)
		if after.Quota = 100; after.Used == 91 { // only in the second round
			return users.Edit(t.Context(), before, after)
		}
		c.upload("file=a", unsized(1), 1)
		return users.Edit(t.Context(), before, after)
	}
	if err := limit(); !fault.Is(err, fault.Conflict) || c.user().Quota != 0 {
		t.Errorf("while a file comes: %v", err)
	}
	c.must(limit())
	c.wantUsed("after the change", 91)
	c.must(failure(service.WritePart(t.Context(), open, 1, strings.NewReader("four"), nil)))
	c.must(failure(service.Complete(t.Context(), open, nil)))
	c.wantUsed("after the end of a session without a reservation", 95)
	expect.Equal(t, "more than the quota", c.upload("file=a", unsized(6), 6).Code, 413)
	expect.Equal(t, "what is left of the quota", c.upload("file=a", unsized(5), 5).Code, 200)
}

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
	users := &users.Service{Table: c.Data.Table, Now: c.Data.Ports.Now}
	before := c.user()
	after := before
	after.Quota = quota
	var err error
	if before.Quota == 0 {
		after.Used, err = c.Service.Files().Used(c.Context(), before)
		c.must(err)
	}
	first()
	return users.Edit(c.Context(), before, after)
}

func nothing() {}

// meanwhile returns a service in whose first write to the table something else happens.
func (c caller) meanwhile(do func(), wait time.Duration) (*files.Service, *int) {
	p, checks := c.Data.Ports, 0
	p.Table, p.CountWait = interrupted{c.Data.Table, &sync.Once{}, do, &checks}, wait
	return service.New(p, c.Service.Settings).Files(), &checks
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
			expect.Equal(t, "another one", c.upload("file=a", unsized(5), 5).Code, 200)
			c.wantUsed("after another one", 5)
			c.wantConsistent(1)
		}
	})
	t.Run("a session", func(t *testing.T) {
		t.Parallel()
		c := newCaller(t)
		s, _ := c.meanwhile(func() { c.must(c.give(100, nothing)) }, 0)
		open, err := c.Service.Files().BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 4}, nil)
		c.must(err)
		_, err = s.WritePart(t.Context(), open, 1, strings.NewReader("four"), nil)
		c.must(err)
		expect.Fault(t, "the completion", failure(s.Complete(t.Context(), open, nil)), fault.Conflict)
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
		_, err := c.Service.Files().Delete(t.Context(), c.user(), 1)
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
	expect.Equal(t, "checks", *checks, 0)
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
		expect.Fault(t, "the quota is given", err, fault.Conflict)
		c.must(c.give(100, nothing))
		c.wantUsed("then", int64(before)+5)
	}
}
