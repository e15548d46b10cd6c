package upload_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/wire"
)

// beginForEve returns ann, and eve, who has a quota.
func beginForEve(t *testing.T, quota int64) (ann, eve caller) {
	t.Helper()
	c := begin(t)
	return c, caller{c.Add("eve", apitest.Quota(quota))}
}

func TestIdleSessionHoldsNoRoomAfterAnHour(t *testing.T) {
	t.Parallel()
	c, eve := beginForEve(t, 10_000)
	data := content(9_000)
	s := c.sent(`,"d":"eve"`, data)
	after := func(d time.Duration) {
		c.Clock.Advance(d)
		c, eve = c.as("ann"), c.as("eve")
	}
	for range 4 { // asking for parts renews it
		after(50 * time.Minute)
		c.sign(s, 1)
		eve.Ask("POST /uploads", `{"name":"x","length":5000}`).Want(413, "1000 bytes are left")
	}
	after(time.Hour)
	taken := eve.plan("", 5_000)
	c.Ask("POST "+s.path("/parts"), `{"numbers":[1]}`).Want(413, "no room")
	c.complete(s, "").Want(413, "no room")
	c.wantUsed("eve", 5_000)
	eve.Ask("DELETE "+taken.path(""), "").Want(204)
	var wg sync.WaitGroup
	for range 5 { // the room is reserved again once
		wg.Go(func() { c.sign(s, 1) })
	}
	wg.Wait()
	c.wantUsed("eve", 9_000)
	after(2 * time.Hour)
	for range 3 {
		wg.Go(func() { c.completes(s, "", data) })
	}
	wg.Wait()
	c.wantUsed("eve", 9_000)
	c.wantCounts(map[string]int{"reserved#": 0})
}

// TestUploadsFindTheRoomThatHasLapsed uploads with and without a stated length.
func TestUploadsFindTheRoomThatHasLapsed(t *testing.T) {
	t.Parallel()
	for what, body := range map[string]io.Reader{
		"stated":    strings.NewReader("12345678"),
		"in chunks": io.MultiReader(strings.NewReader("12345678")),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, _ := beginForEve(t, 10)
			c.InProcess("a gateway states the length")
			c.plan(`,"d":"eve"`, 9)
			c.Clock.Advance(time.Hour)
			resp := c.Request("PUT", "/upload?file=x", body, "Authorization", apitest.Basic("eve", apitest.Password))
			expect.Equal(t, "the status", resp.StatusCode, 200)
			c.wantUsed("eve", 8)
		})
	}
}

// TestRoomOfASessionIsNotHeldTwice lets a sweep give back what is just being renewed.
func TestRoomOfASessionIsNotHeldTwice(t *testing.T) {
	t.Parallel()
	c, _ := beginForEve(t, 10_000)
	s := c.plan(`,"d":"eve"`, 9_000)
	c.Clock.Advance(time.Hour)
	c = c.as("ann")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if i%2 == 0 {
				c.sign(s, 1)
			} else if _, err := c.Service.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.wantUsed("eve", 9_000)
	c.wantCounts(map[string]int{"reserved#": 1})
}

// TestOpenSessionReservesQuota checks that a session takes its room when it begins.
func TestOpenSessionReservesQuota(t *testing.T) {
	t.Parallel()
	c, eve := beginForEve(t, 10_000)
	data := content(9_000)
	s := eve.plan("", len(data))
	eve.post("file=x", strings.Repeat("x", 1001)).Want(413, "1000 bytes are left")
	c.Ask("POST /uploads", `{"name":"x","length":1001,"d":"eve"}`).Want(413, "no room")
	eve.sendAll(s, data)
	eve.Upload("file=x", strings.Repeat("x", 1000))
	eve.post("file=x", "x").Want(413)
	for range 2 {
		expect.Equal(t, "eve's files", len(eve.complete(s, "").Want(200).Files), 2)
	}
	eve.Ask("POST /uploads", `{"name":"x","length":1}`).Want(413, "0 bytes are left")
	c.wantUsed("eve", 10_000)
}

// TestWrongSHA256EndsTheSession checks that the session's room goes back to the owner.
func TestWrongSHA256EndsTheSession(t *testing.T) {
	t.Parallel()
	c, eve := beginForEve(t, 10_000)
	for range 2 { // the second needs the room of the first
		s := eve.sent(fmt.Sprintf(`,"sha256":%q`, strings.Repeat("00", 32)), content(9_000))
		eve.complete(s, "").Want(400, "SHA-256", "begin a new upload")
		eve.Ask("GET "+s.path(""), "").Want(404)
	}
	expect.Equal(t, "sessions", len(c.Sessions()), 0)
	c.wantNothingLeft()
}

func TestStreamStopsAtTheQuota(t *testing.T) {
	t.Parallel()
	c, eve := beginForEve(t, 2*partSize)
	s := c.begins(fmt.Sprintf(`{"name":"x","d":"eve","partSize":%d}`, partSize))
	c.Ask("POST "+s.path("/parts"), `{"numbers":[1,3]}`).Want(413, "no room")
	data := content(2 * partSize)
	c.stream(s, data)
	eve.Upload("file=x", "x")
	c.complete(s, fmt.Sprintf(`{"length":%d}`, len(data))).Want(413, "no room")
	c.wantUsed("eve", 1)
}

// TestOpenSessionsOfAUserAreBounded begins sessions concurrently, ends some, and lets
// others expire.
func TestOpenSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	c := begin(t)
	want := func(n, begun int) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		for range n {
			wg.Go(func() { // a stack may be too busy to answer, and then nobody knows what was done: so with a key
				a := c.Ask("POST /uploads", `{"name":"x","length":1,"d":"bob"}`, "Idempotency-Key", rand.Text())
				if a.Code != 201 && a.Want(429, "100").Header.Get("Retry-After") == "" {
					t.Error("Retry-After is missing")
				}
				mu.Lock()
				defer mu.Unlock()
				codes[a.Code]++
			})
		}
		wg.Wait()
		expect.Equal(t, fmt.Sprint("sessions of ", n, " that began"), codes[201], begun)
	}
	want(95, 95)
	want(20, 5)
	open := c.open()
	c.Ask("DELETE /uploads/"+open[0], "").Want(204)
	c.as("bob").Ask("DELETE /uploads/"+open[1], "").Want(204)
	s := c.shown(session{ID: open[2]})
	c.sendAll(s, "x")
	c.complete(s, "").Want(200)
	want(10, 3)
	c.as("bob").plan("", 1) // another user has a bound of their own
	c.Clock.Advance(files.SessionLife)
	c = c.as("ann")
	want(110, 100)
	c.wantCounts(map[string]int{"upload#": 202})
}

// onDisk serves the same data with another function that says how much room is left.
func (c caller) onDisk(free func() (int64, error)) {
	c.Helper()
	p := c.Data.Ports
	p.Free = free
	s := httptest.NewServer(local.Handler(&api.Ports{Service: service.New(p, c.Service.Settings)}))
	c.Cleanup(s.Close)
	c.Base = s.URL + wire.Prefix
}

func TestOpenSessionsFitTheDisk(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs a disk")
	free := int64(10_000)
	c.onDisk(func() (int64, error) { return free, nil })
	s := c.plan("", 8_000)
	c.Ask("POST /uploads", `{"name":"x","length":2001}`).Want(507, "open uploads")
	c.sendAll(s, content(8_000))
	free -= 8_000 // what has arrived needs no room any more
	c.Ask("POST /uploads", `{"name":"x","length":2001}`).Want(507)
	second := c.plan("", 2_000)
	c.as("bob").plan("", 2_000)
	c.complete(s, "").Want(200)
	c.Ask("POST /uploads", `{"name":"x","length":1}`).Want(507)
	c.Ask("DELETE "+second.path(""), "").Want(204)
	c.plan("", 2_000)
	expect.Equal(t, "sessions in the store", len(c.Sessions()), 2)
	if strings.Contains(c.Log.String(), "level=ERROR") { // the caller asked for too much
		t.Errorf("the log says %s", c.Log)
	}
}
