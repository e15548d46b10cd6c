package upload_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
)

// used returns the bytes that count against a user's quota.
func (c caller) used(name string) int64 {
	c.Helper()
	u, err := c.Users.Get(c.Context(), name)
	must(c.TB, err)
	return u.Used
}

func TestIdleSessionHoldsNoRoomAfterAnHour(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	s := c.plan(`,"d":"eve"`, 9_000)
	data := content(t, 9_000)
	c.sendAll(s, data)
	again := func(d time.Duration) (eve caller) {
		c.Clock.Advance(d)
		c = c.as("ann")
		return c.as("eve")
	}
	const other = `{"name":"x","length":5000}`
	for range 4 { // asking for parts renews it
		eve := again(50 * time.Minute)
		c.sign(s.ID, `{"numbers":[1]}`)
		eve.refused("POST", "/uploads", other, 413, "1000 bytes are left")
	}
	eve := again(time.Hour)
	taken := eve.plan("", 5_000)
	c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1]}`, 413, "no room")
	c.refused("POST", "/uploads/"+s.ID+"/complete", "", 413, "no room")
	if got := c.used("eve"); got != 5_000 {
		t.Errorf("%d bytes are used", got)
	}
	eve.call("DELETE", "/uploads/"+taken.ID, "", 204, nil)
	var wg sync.WaitGroup
	for range 5 { // the room is reserved again once
		wg.Go(func() { c.sign(s.ID, `{"numbers":[1]}`) })
	}
	wg.Wait()
	if got := c.used("eve"); got != 9_000 {
		t.Errorf("%d bytes are used, want those of the session", got)
	}
	again(2 * time.Hour)
	for range 3 {
		wg.Go(func() { c.wantFile(c.complete(s.ID, ""), data) })
	}
	wg.Wait()
	if got, left := c.used("eve"), c.Partitions("reserved#"); got != 9_000 || len(left) != 0 {
		t.Errorf("%d bytes are used, and %v are reserved", got, left)
	}
}

// TestUploadsFindTheRoomThatHasLapsed uploads with and without a stated length.
func TestUploadsFindTheRoomThatHasLapsed(t *testing.T) {
	t.Parallel()
	for what, body := range map[string]io.Reader{"stated": strings.NewReader("12345678"), "in chunks": io.MultiReader(strings.NewReader("12345678"))} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.InProcess("a gateway states the length")
			c.AddUser("eve", password, quota(10))
			c.plan(`,"d":"eve"`, 9)
			c.Clock.Advance(time.Hour)
			c.Decode(c.Request("PUT", "/upload?file=x", body, "Authorization", apitest.Basic("eve", password)), 200)
			if got := c.used("eve"); got != 8 {
				t.Errorf("%d bytes are used", got)
			}
		})
	}
}

// TestRoomOfASessionIsNotHeldTwice lets a sweep give back what is just being renewed.
func TestRoomOfASessionIsNotHeldTwice(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	s := c.plan(`,"d":"eve"`, 9_000)
	c.Clock.Advance(time.Hour)
	c = c.as("ann")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if i%2 == 0 {
				c.sign(s.ID, `{"numbers":[1]}`)
			} else if _, err := c.Service.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, held := c.used("eve"), c.Partitions("reserved#"); got != 9_000 || len(held) != 1 {
		t.Errorf("%d bytes are used, and %v are reserved", got, held)
	}
}

// TestOpenSessionReservesQuota checks that a session takes its room when it begins.
func TestOpenSessionReservesQuota(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	eve := c.as("eve")
	s, data := eve.plan("", 9_000), content(t, 9_000)
	eve.refused("POST", "/upload?file=x", strings.Repeat("x", 1001), 413, "1000 bytes are left")
	c.refused("POST", "/uploads", `{"name":"x","length":1001,"d":"eve"}`, 413, "no room")
	eve.sendAll(s, data)
	eve.Put(eve.bearer, "file=x", strings.Repeat("x", 1000))
	eve.refused("POST", "/upload?file=x", "x", 413)
	for range 2 {
		if e := eve.complete(s.ID, ""); len(e.Files) != 2 {
			t.Errorf("eve has %+v", e.Files)
		}
	}
	eve.refused("POST", "/uploads", `{"name":"x","length":1}`, 413, "0 bytes are left")
	if u, err := c.Users.Get(t.Context(), "eve"); err != nil || u.Used != 10_000 {
		t.Errorf("eve uses %d bytes, %v", u.Used, err)
	}
}

// TestWrongSHA256EndsTheSession checks that the session's room goes back to the owner.
func TestWrongSHA256EndsTheSession(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	eve := c.as("eve")
	data := content(t, 9_000)
	for range 2 { // the second needs the room of the first
		s := eve.plan(fmt.Sprintf(`,"sha256":%q`, strings.Repeat("00", 32)), len(data))
		eve.sendAll(s, data)
		eve.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "SHA-256", "begin a new upload")
		eve.refused("GET", "/uploads/"+s.ID, "", 404)
	}
	if n := len(c.Sessions()); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
	c.wantNothingLeft()
}

func TestStreamStopsAtTheQuota(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(2*partSize))
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","d":"eve","partSize":%d}`, partSize), 201, &s)
	c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1,3]}`, 413, "no room")
	data := content(t, 2*partSize)
	c.stream(s, data)
	eve := c.as("eve")
	eve.Decode(eve.Request("PUT", "/upload?file=x", strings.NewReader("x"), "Authorization", "Bearer "+eve.bearer), 200)
	end := fmt.Sprintf(`{"length":%d}`, len(data))
	c.refused("POST", "/uploads/"+s.ID+"/complete", end, 413, "no room")
	if got := c.used("eve"); got != 1 {
		t.Errorf("%d bytes are used", got)
	}
}

// TestOpenSessionsOfAUserAreBounded begins sessions concurrently, ends some, and lets
// others expire.
func TestOpenSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	c := begin(t)
	begin := func(n int) (begun, refused int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range n {
			wg.Go(func() {
				resp := c.Request("POST", "/uploads", strings.NewReader(`{"name":"x","length":1,"d":"bob"}`), "Authorization", "Bearer "+c.bearer)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case resp.StatusCode == 201:
					begun++
				case resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "" && strings.Contains(resp.Header.Get("Ferry-Error"), "100"):
					refused++
				default:
					t.Errorf("status %d (%s)", resp.StatusCode, resp.Header.Get("Ferry-Error"))
				}
			})
		}
		wg.Wait()
		return begun, refused
	}
	want := func(n, begun int) {
		t.Helper()
		if got, refused := begin(n); got != begun || refused != n-begun {
			t.Errorf("%d sessions began and %d were refused, want %d to begin", got, refused, begun)
		}
	}
	want(95, 95)
	want(20, 5)
	open := c.open()
	c.call("DELETE", "/uploads/"+open[0], "", 204, nil)
	c.as("bob").call("DELETE", "/uploads/"+open[1], "", 204, nil)
	var s session
	c.call("GET", "/uploads/"+open[2], "", 200, &s)
	c.sendAll(s, []byte("x"))
	c.complete(s.ID, "")
	want(10, 3)
	c.as("bob").plan("", 1) // another user has a bound of their own
	c.Clock.Advance(files.SessionLife)
	c = c.as("ann")
	want(110, 100)
	if n := len(c.Partitions("upload#")); n != 202 {
		t.Errorf("there are %d sessions", n)
	}
}

// onDisk serves the same data with another function that says how much room is left.
func (c caller) onDisk(free func() (int64, error)) {
	c.Helper()
	p := c.Data.Ports.Clone()
	p.Free = free
	s := httptest.NewServer(local.Handler(p))
	c.Cleanup(s.Close)
	c.Base = s.URL + api.Prefix
}

func TestOpenSessionsFitTheDisk(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs a disk")
	free := int64(10_000)
	c.onDisk(func() (int64, error) { return free, nil })
	s := c.plan("", 8_000)
	c.refused("POST", "/uploads", `{"name":"x","length":2001}`, 507, "open uploads")
	c.sendAll(s, content(t, 8_000))
	free -= 8_000 // what has arrived needs no room any more
	c.refused("POST", "/uploads", `{"name":"x","length":2001}`, 507)
	second := c.plan("", 2_000)
	c.as("bob").plan("", 2_000)
	c.complete(s.ID, "")
	c.refused("POST", "/uploads", `{"name":"x","length":1}`, 507)
	c.call("DELETE", "/uploads/"+second.ID, "", 204, nil)
	c.plan("", 2_000)
	if n := len(c.Sessions()); n != 2 {
		t.Errorf("the store has %d sessions", n)
	}
	if strings.Contains(c.Log.String(), "level=ERROR") { // the caller asked for too much
		t.Errorf("the log says %s", c.Log)
	}
}
