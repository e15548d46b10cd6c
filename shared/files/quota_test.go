package files_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
)

func quota(n int64) func(*auth.User) { return func(u *auth.User) { u.Quota = n } }

// uses checks what the caller's use says and that the files come to it.
func (c caller) uses(what string, want int64) {
	c.Helper()
	if used, sum := c.user().Used, c.sum(); used != want || sum != want {
		c.Errorf("%s: %d bytes are said to be used and %d are stored, want %d", what, used, sum, want)
	}
	if left := c.Partitions("reserved#"); len(left) != 0 {
		c.Errorf("%s: reservations are left: %v", what, left)
	}
}

// endless is a body without a stated length.
func endless(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }

func TestAnUploadFitsTheQuotaOrIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(100))
	for _, k := range []struct {
		what   string
		body   io.Reader
		length int64
		status int
		used   int64
	}{
		{"a file that does not fit", endless(101), 101, 413, 0},
		{"a file of unknown length that does not fit", endless(101), -1, 413, 0},
		{"a file", endless(60), 60, 200, 60},
		{"a second that does not fit", endless(41), 41, 413, 60},
		{"one of unknown length that does not fit", endless(1000), -1, 413, 60},
		{"one of unknown length that fits", endless(30), -1, 200, 90},
		{"one that is shorter than stated", endless(5), 10, 400, 90},
		{"what just fits", endless(10), -1, 200, 100},
		{"nothing, when there is no room", endless(0), 0, 200, 100},
		{"nothing of unknown length", endless(0), -1, 200, 100},
		{"one byte too many", endless(1), 1, 413, 100},
		{"one byte of unknown length too many", endless(1), -1, 413, 100},
	} {
		w := c.upload("file=a", k.body, k.length)
		if w.Code != k.status {
			t.Errorf("%s gives %d, want %d (%s)", k.what, w.Code, k.status, w.Header().Get("Ferry-Error"))
		}
		c.uses(k.what, k.used)
	}
	c.sound(5)
}

func TestAFormIsBoundByTheQuotaAsAWhole(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(1000))
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
		{"two that are too long together", []int{400, 400}, 413, 300},
		{"two that fit", []int{300, 400}, 200, 1000},
	} {
		r := c.Request("POST", "/upload", io.MultiReader(strings.NewReader(form(k.sizes...))),
			"Authorization", "Bearer "+c.bearer, "Content-Type", "multipart/form-data; boundary=b")
		if r.StatusCode != k.status {
			t.Errorf("%s: %d", k.what, r.StatusCode)
		}
		c.uses(k.what, k.used)
	}
	c.sound(5)
}

func TestTheQuotaHoldsForManyUploadsAtOnce(t *testing.T) {
	t.Parallel()
	const size, fit = 30, 33
	for what, length := range map[string]int64{"of stated length": size, "of unknown length": -1} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t, quota(size*fit+size-1))
			var stored, refused atomic.Int64
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					switch w := c.upload("file=a", endless(size), length); w.Code {
					case 200:
						stored.Add(1)
					case 413:
						refused.Add(1)
					default:
						t.Errorf("an upload gives %d (%s)", w.Code, w.Header().Get("Ferry-Error"))
					}
				})
			}
			wg.Wait()
			// One that does not state its length holds all the room that is
			// left while it lasts, so that others may be refused.
			if n := stored.Load(); n > fit || n == 0 || length > 0 && n != fit {
				t.Errorf("%d uploads were stored", n)
			}
			c.uses("at last", size*stored.Load())
			c.sound(int(stored.Load()))
			for c.upload("file=a", endless(size), length).Code == 200 {
				stored.Add(1)
			}
			if stored.Load() != fit {
				t.Errorf("%d files fit, want %d", stored.Load(), fit)
			}
			c.uses("when it is full", size*fit)
		})
	}
}

func TestWhatFailsGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(100))
	cut := io.MultiReader(strings.NewReader("half of"), brokenReader{})
	for what, try := range map[string]func() int{
		"a body that is cut off": func() int { return c.upload("file=a", cut, 50).Code },
		"a form without a file": func() int {
			return c.Request("POST", "/upload", strings.NewReader("--b--\r\n"), "Authorization", "Bearer "+c.bearer, "Content-Type", "multipart/form-data; boundary=b").StatusCode
		},
		"another digest": func() int {
			return c.Request("POST", "/upload?file=a", strings.NewReader("x"), "Authorization", "Bearer "+c.bearer, "Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:").StatusCode
		},
		"a store that is away": func() int {
			c.Calls.Before("blob.Create", func() error { return errors.New("away") })
			defer c.Calls.Before("blob.Create", nil)
			return c.upload("file=a", endless(50), 50).Code
		},
	} {
		if status := try(); status != 400 && (status != 500 || !strings.Contains(what, "store")) {
			t.Errorf("%s gives %d", what, status)
		}
		c.uses(what, 0)
		c.sound(0)
	}
	if w := c.upload("file=a", endless(100), 100); w.Code != 200 {
		t.Errorf("afterwards all the room gives %d", w.Code)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAFileTakesRoomUntilItIsGoneForGood(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(100))
	c.Put(c.bearer, "file=a", strings.Repeat("x", 60))
	for _, path := range []string{"DELETE /files/1", "POST /files/1/restore", "DELETE /files/1"} {
		method, path, _ := strings.Cut(path, " ")
		c.call(method, path)
		c.uses("after "+method, 60)
	}
	c.Clock.Advance(91 * day)
	c.sweep(time.Hour)
	if u := c.user(); u.Used != 0 {
		t.Errorf("after it is gone %d bytes are used", u.Used)
	}
	c.bearer = c.Login("alice", password)
	c.Put(c.bearer, "file=b", strings.Repeat("x", 100))
	c.uses("afterwards", 100)
}

func TestAnothersRoomIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("bob", password, quota(100))
	c.Put(c.Login("bob", password), "file=a", strings.Repeat("x", 63))
	said := map[string]bool{}
	for _, length := range []int64{50, -1} {
		w := c.upload("file=a&d=bob", endless(50), length)
		if w.Code != 413 {
			t.Errorf("a file too large for bob gives %d", w.Code)
		}
		said[w.Header().Get("Ferry-Error")] = true
	}
	if len(said) != 1 || said[""] {
		t.Errorf("it says %v", said)
	}
	for text := range said {
		if strings.ContainsAny(text, "0123456789") {
			t.Errorf("it says %q", text)
		}
	}
	if w := c.upload("file=a&d=bob", endless(37), 37); w.Code != 200 {
		t.Errorf("what fits gives %d", w.Code)
	}
	if u, err := c.Users.Get(t.Context(), "bob"); err != nil || u.Used != 100 || fmt.Sprint(c.user().Used) != "0" {
		t.Errorf("bob uses %d, %v; alice %d", u.Used, err, c.user().Used)
	}
}

// TestARemovedUsersReservationsAreNotTheNextOnes has an upload begun for a user
// who is removed, and whose name another gets.
func TestARemovedUsersReservationsAreNotTheNextOnes(t *testing.T) {
	t.Parallel()
	c := begin(t, quota(100))
	c.AddUser("bob", password)
	service := file.Service(c.Data.Ports)
	if _, err := service.Begin(t.Context(), "alice", auth.User{Name: "bob"}, 30, files.Sending{}); err != nil { // of a process that crashed
		t.Fatal(err)
	}
	slow, err := service.Begin(t.Context(), "alice", auth.User{Name: "bob"}, 7, files.Sending{})
	if err == nil {
		err = slow.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("content"), Size: 7})
	}
	if err == nil {
		err = c.Users.Disable(t.Context(), "alice")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.RemoveAll(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if u := c.user(); u.Used != 0 {
		t.Errorf("with all removed %d bytes are used", u.Used)
	}
	if err := c.Users.Remove(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	c.AddUser("alice", password, quota(50))
	if _, err := slow.Commit(t.Context()); !envelope.IsFault(err, envelope.Invalid) {
		t.Errorf("an upload to the removed user ends with %v", err)
	}
	c.uses("at first", 0)
	c.Clock.Advance(25 * time.Hour)
	c.sweep(time.Hour)
	c.uses("after a day", 0)
	c.sound(0)
}
