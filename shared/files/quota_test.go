package files_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
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

// room is what happens to the room of alice. Uploads and sessions have names.
type room struct {
	caller
	uploads  map[string]*files.Upload
	sessions map[string]files.Session
}

func newRoom(t *testing.T) *room {
	t.Helper()
	return &room{caller: newCaller(t), uploads: map[string]*files.Upload{}, sessions: map[string]files.Session{}}
}

// do is a step such as: upload NAME BYTES, or upload NAME BYTES USER.
func (r *room) do(step string) (err error) {
	var verb, name, who string
	var n int
	_, _ = fmt.Sscan(step, &verb, &name, &n, &who)
	ctx, all := r.Context(), r.Service.Files()
	by := func() files.By {
		if who != "" {
			return files.By{User: who}
		}
		return r.by()
	}
	part := func(size int) files.Part {
		return files.Part{Name: name, Body: strings.NewReader(strings.Repeat("x", max(n, 0))), Size: int64(size)}
	}
	switch verb {
	case "upload", "stream":
		size := n
		if verb == "stream" {
			size = -1
		}
		u, err := all.Begin(ctx, "alice", by(), int64(size), files.Sending{})
		if err != nil {
			return err
		}
		if err := u.Add(ctx, part(size)); err != nil {
			u.Abort(ctx)
			return err
		}
		return failure(u.Commit(ctx, 0))
	case "begin":
		r.uploads[name], err = all.Begin(ctx, "alice", by(), int64(n), files.Sending{})
		return err
	case "add":
		return r.uploads[name].Add(ctx, part(-1))
	case "cut":
		return r.uploads[name].Add(ctx, part(n+1))
	case "abort":
		r.uploads[name].Abort(ctx)
	case "commit":
		return failure(r.uploads[name].Commit(ctx, 0))
	case "session":
		r.sessions[name], err = all.BeginSession(ctx, by(), files.Plan{
			Owner:  "alice",
			Name:   name,
			Length: int64(n),
		}, nil)
		return err
	case "ask", "part", "complete", "end":
		sess, err := all.Session(ctx, by(), r.sessions[name].ID, true)
		switch {
		case err != nil:
			return err
		case verb == "ask":
			return all.Expect(ctx, &sess, nil, 1)
		case verb == "part":
			return failure(all.WritePart(ctx, sess, 1, part(n).Body, nil))
		case verb == "complete":
			return failure(all.Complete(ctx, sess, nil))
		}
		return all.EndSession(ctx, sess)
	default:
		return r.change(verb, name, step)
	}
	return nil
}

// change is a step of the owner, of the operator, or of time.
func (r *room) change(verb, what, step string) error {
	ctx, all := r.Context(), r.Service.Files()
	n, _ := strconv.ParseInt(what, 10, 64)
	switch verb {
	case "used":
		sum := fmt.Sprintf("%d in %d files, %d reserved", r.sum(), len(r.stored()), len(r.Partitions("reserved#")))
		return fmt.Errorf("%d: %s", r.user().Used, sum)
	case "delete":
		return failure(all.Delete(ctx, r.user(), n))
	case "restore":
		return failure(all.Restore(ctx, r.user(), n))
	case "restore-lazily":
		return failure(r.lazy().Restore(ctx, r.user(), n))
	case "purge":
		return all.Purge(ctx, r.user(), n)
	case "quota":
		return r.give(n)
	case "disk":
		r.Data.Ports.Free = func() (int64, error) { return n, nil }
		r.Restart()
	case "sessions":
		for i := range n {
			r.must(r.do(fmt.Sprintf("session %d 1", i)))
		}
	case "disable":
		return r.Users.Disable(ctx, "alice")
	case "clear":
		return failure(all.RemoveAll(ctx, "alice"))
	case "remove":
		r.remove()
	case "return":
		r.AddUser("alice", password)
	case "cloud":
		r.CountAtOnce()
	case "sweep":
		r.sweep(time.Hour)
	case "wait":
		span, err := time.ParseDuration(what)
		r.Clock.Advance(span)
		return err
	case "meanwhile":
		r.Calls.Once("table.Write", func() {
			apitest.Tell(r.TB, strings.ReplaceAll(strings.TrimPrefix(step, "meanwhile "), ", ", "\n"), r.do)
		})
	default:
		r.Fatalf("there is no step %s", step)
	}
	return nil
}

// give gives the caller a quota as ferry user edit does.
func (c caller) give(quota int64) (err error) {
	c.Helper()
	users := &users.Service{Table: c.Data.Ports.Table, Now: c.Data.Ports.Now}
	before := c.user()
	after := before
	after.Quota = quota
	if before.Quota == 0 {
		after.Used, err = c.Service.Files().Used(c.Context(), before)
		c.must(err)
	}
	return users.Edit(c.Context(), before, after)
}

func TestAQuotaIsKept(t *testing.T) {
	t.Parallel()
	for what, script := range map[string]string{
		"by uploads that state their length, and by others": `
			quota 100
			upload a 101 > 413 exceed the quota: 100 bytes are left
			stream a 101 > 413 exceed the quota: 100 bytes are left
			upload a 60
			upload b 41 > 413 exceed the quota: 40 bytes are left
			stream b 1000 > 413 exceed the quota: 40 bytes are left
			stream b 30
			begin c 6
			cut c 5 > 400 the body's length is not the stated one
			abort c
			used > 90: 90 in 2 files, 0 reserved
			stream c 10
			upload empty 0
			stream empty 0
			upload d 1 > 413 exceed the quota: 0 bytes are left
			stream d 1 > 413 exceed the quota: 0 bytes are left
			used > 100: 100 in 5 files, 0 reserved`,
		"by several files together": `
			quota 1000
			begin a -1
			add a 100
			add a 200
			add a 0
			commit a
			begin b -1
			add b 400
			add b 400 > 413 exceed the quota: 700 bytes are left
			abort b
			begin c -1
			add c 300
			add c 400
			commit c
			used > 1000: 1000 in 5 files, 0 reserved`,
		"by a slow upload, which keeps no room from others": `
			quota 10
			begin slow 7 bob
			used > 0: 0 in 0 files, 0 reserved
			upload a 10
			add slow 7
			commit slow > 413 other uploads took the room meanwhile, or the user was removed
			used > 10: 10 in 1 files, 0 reserved`,
		"by a slow upload of unknown length": `
			quota 10
			begin slow -1 bob
			upload a 10
			add slow 7
			commit slow > 413 other uploads took the room meanwhile
			used > 10: 10 in 1 files, 0 reserved`,
		"by files until they are purged": `
			quota 100
			upload a 60
			delete 1
			restore 1
			upload b 41 > 413 exceed the quota
			delete 1
			used > 60: 60 in 1 files, 0 reserved
			purge 1
			upload b 100
			used > 100: 100 in 1 files, 0 reserved`,
		"by files until a sweep purges them": `
			quota 100
			upload a 60
			delete 1
			wait 2184h
			sweep
			used > 0: 0 in 0 files, 0 reserved`,
		"by others, who do not learn how much room is left": `
			quota 100
			upload a 63
			upload b 50 bob > 413 the destination user has no room for this
			stream b 50 bob > 413 the destination user has no room for this
			upload b 37 bob
			used > 100: 100 in 2 files, 0 reserved`,
		"and a later user of the name is not charged for an earlier one": `
			quota 100
			session s 30 bob
			begin slow 7 bob
			add slow 7
			disable
			clear
			used > 0: 0 in 0 files, 0 reserved
			remove
			return
			quota 50
			commit slow > 413 or the user was removed
			wait 25h
			sweep
			used > 0: 0 in 0 files, 0 reserved`,
		"and nothing is charged for a user who is removed meanwhile": `
			quota 100
			begin a 60
			add a 60
			meanwhile remove
			commit a > 413 or the user was removed
			return
			quota 100
			used > 0: 0 in 0 files, 0 reserved`,
		"and nothing is charged to a user of the same name meanwhile": `
			quota 100
			begin a 60
			add a 60
			meanwhile remove, return, quota 100
			commit a > 413 or the user was removed
			used > 0: 0 in 0 files, 0 reserved`,
		"by a session, which holds its room for an hour, and longer if somebody asks for its parts": `
			quota 100
			session s 90
			wait 50m
			ask s
			wait 50m
			session t 11 > 413 exceed the quota: 10 bytes are left
			wait 11m
			upload a 50
			ask s > 413 exceed the quota: 50 bytes are left
			complete s > 413 exceed the quota: 50 bytes are left
			used > 50: 50 in 1 files, 0 reserved
			quota 150
			ask s
			used > 140: 50 in 1 files, 1 reserved
			part s 90
			complete s
			complete s
			used > 140: 140 in 2 files, 0 reserved`,
		"by a session, which gives its room back at its end": `
			quota 100
			session s 90 bob
			session t 11 bob > 413 no room
			end s 0 bob
			upload a 100`,
		"that comes later, and knows what is there": `
			upload a 60
			upload a 30
			session s 4
			delete 1
			meanwhile upload b 1
			quota 100 > 409 got a file at the same moment
			quota 100
			used > 91: 91 in 3 files, 0 reserved
			part s 4
			complete s
			used > 95: 95 in 4 files, 0 reserved
			upload a 6 > 413 exceed the quota: 5 bytes are left
			upload a 5`,
		"that comes while an upload ends": `
			begin a 5
			add a 5
			wait 2s
			meanwhile quota 100
			commit a > 409 was given a quota
			upload a 5
			used > 5: 5 in 1 files, 0 reserved`,
		"that comes in the cloud while an upload ends": `
			cloud
			begin a 5
			add a 5
			wait 2s
			meanwhile quota 100
			commit a > 409 was given a quota
			used > 0: 0 in 0 files, 0 reserved`,
		"that comes while a session ends": `
			session s 4
			part s 4
			meanwhile quota 100
			complete s > 409 given a quota
			complete s
			used > 4: 4 in 1 files, 0 reserved`,
		"that comes while a file is purged": `
			upload a 5
			upload b 5
			delete 1
			meanwhile quota 100
			purge 1
			used > 5: 5 in 1 files, 0 reserved`,
		"that is taken and given again while an upload ends that knew the first one": `
			quota 100
			begin a 5
			add a 5
			quota 0
			meanwhile commit a
			quota 100 > 409 got a file at the same moment
			quota 100
			used > 5: 5 in 1 files, 0 reserved`,
		"that is taken and given again, though some of it is used": `
			quota 100
			upload a 7
			begin a 5
			add a 5
			quota 0
			meanwhile commit a
			quota 100 > 409 got a file at the same moment
			quota 100
			used > 12: 12 in 2 files, 0 reserved`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			apitest.Tell(t, script, r.do)
			r.wantConsistent(len(r.stored()))
		})
	}
}

func TestOpenSessionsAreBounded(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"there are a hundred": `
			sessions 100
			session s 1 > 429 you have 100 open uploads
			session t 1 bob
			end 7
			session s 1
			session u 1 > 429 you have 100 open uploads
			wait 168h
			session u 1`,
		"they fit the disk with what has arrived": `
			disk 100
			session s 80
			session t 21 > 507 your open uploads and this one need more room
			part s 80
			disk 20
			session t 21 > 507 your open uploads
			session t 20
			complete s
			session u 1 > 507 your open uploads
			end t
			session u 20`,
		"they expire in a week": `
			session s 4
			wait 167h
			part s 4
			wait 1h
			complete s > 404 has expired
			part s 4 > 404 has expired`,
		"they end once": `
			session s 4
			part s 4
			complete s
			end s > 409 the upload is complete
			session t 4
			end t
			complete t > 404 no upload session`,
	}, func(t *testing.T) func(string) error { return newRoom(t).do })
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

// checking counts the checks in all writes.
type checking struct {
	table.Table
	n *int
}

func (c checking) Write(ctx context.Context, ops ...table.Op) error {
	for _, op := range ops {
		if op.Kind == table.KindCheck {
			*c.n++
		}
	}
	return c.Table.Write(ctx, ops...)
}

// TestAQuickCommitPaysForNoCheck: in a shared table each would cost two write units.
func TestAQuickCommitPaysForNoCheck(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{0: 0, time.Second: 1} {
		c, checks := newCaller(t), 0
		p := c.Data.Ports
		p.Table, p.CountWait = checking{p.Table, &checks}, time.Second
		s := service.New(p, c.Service.Settings).Files()
		u, err := s.Begin(t.Context(), "alice", c.by(), 5, files.Sending{})
		c.must(err)
		c.must(u.Add(t.Context(), files.Part{Name: "a", Body: unsized(5), Size: 5}))
		c.Clock.Advance(after)
		c.must(failure(u.Commit(t.Context(), 0)))
		c.must(failure(s.Delete(t.Context(), c.user(), 1)))
		c.must(s.Purge(t.Context(), c.user(), 1))
		expect.Equal(t, "checks", checks, want)
	}
}
