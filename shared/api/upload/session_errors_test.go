package upload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/wire"
)

// remove removes a user as `ferry user remove` does.
func (c sessionCaller) remove(name string) {
	c.Helper()
	err := c.Users.Disable(c.Context(), name)
	if err == nil {
		_, err = file.Service(c.Data.Ports).RemoveAll(c.Context(), name)
	}
	if err == nil {
		err = c.Users.Remove(c.Context(), name)
	}
	if err != nil {
		c.Fatalf("removing %s: %v", name, err)
	}
}

// wantNothingLeft sweeps after the store has dropped all sessions, and checks that nothing is left.
func (c sessionCaller) wantNothingLeft() {
	c.Helper()
	c.Clock.Advance(blob.PartsLife + 2*time.Hour)
	if r, err := c.Service.Sweep(c.Context()); err != nil || r.Failed != 0 {
		c.Errorf("the sweep: %+v, %v", r, err)
	}
	if left := c.Objects(blob.Files); len(left) != 0 {
		c.Errorf("objects are left: %v", left)
	}
	if left := c.Sessions(); len(left) != 0 {
		c.Errorf("sessions are left: %v", left)
	}
	if left := c.Partitions("reserved#"); len(left) != 0 {
		c.Errorf("reservations are left: %v", left)
	}
}

func TestSessionNameDropsFolders(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	for name, want := range map[string]string{
		"/etc/passwd": "passwd", "../../a.txt": "a.txt", `C:\\temp\\b.txt`: "b.txt", `c\u0000\n.txt`: "c.txt", "d/../e": "e",
	} {
		var s session
		c.call("POST", "/uploads", fmt.Sprintf(`{"name":"%s","length":1}`, name), 201, &s)
		c.sendAll(s, []byte("x"))
		if got := c.complete(s.ID, "").Files[0].Name; s.Name != want || got != want {
			t.Errorf("%s is %q in the session and then %q, want %q", name, s.Name, got, want)
		}
	}
	for _, name := range []string{"", ".", "..", "/", "a/", `a\\`, `\u0000`} {
		c.refused("POST", "/uploads", fmt.Sprintf(`{"name":"%s","length":1}`, name), 400, "name")
	}
}

func TestResentPartReplacesTheFirst(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	first, second := content(t, partSize+9), content(t, partSize+9)
	s := c.plan("", len(second))
	c.sendAll(s, first)
	for _, p := range c.sign(s.ID, `{"numbers":[1,2]}`) {
		from := int64(p.Number-1) * partSize
		if resp := c.put(p, second[from:from+p.Size]); resp.StatusCode != 200 {
			t.Fatalf("part %d again: status %d", p.Number, resp.StatusCode)
		}
	}
	whole := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(crc64nvme.Checksum(first)))
	c.refused("POST", "/uploads/"+s.ID+"/complete", whole, 400, fmt.Sprintf("%016x", crc64nvme.Checksum(second)))
	c.wantFile(c.complete(s.ID, ""), second)
}

// TestChunkedPartIsMeasured sends parts in chunks, without a Content-Length.
func TestChunkedPartIsMeasured(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	c.InProcess("parts go to the store, which has its own answers")
	data := content(t, 1000)
	s := c.plan("", len(data))
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	for _, tc := range []struct {
		data   []byte
		status int
	}{{data[:999], 400}, {append(bytes.Clone(data), 1), 400}, {nil, 400}, {data, 200}} {
		r, err := http.NewRequest(p.Method, p.URL, io.MultiReader(bytes.NewReader(tc.data)))
		if err != nil {
			t.Fatal(err)
		}
		if resp := c.Do(r); resp.StatusCode != tc.status {
			t.Errorf("%d bytes: status %d, want %d", len(tc.data), resp.StatusCode, tc.status)
		}
		if tc.status != 200 {
			c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "missing, beginning with 1")
		}
	}
	c.wantFile(c.complete(s.ID, ""), data)
}

func TestHundredPartsCanBeSignedAtOnce(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	s := c.plan("", 101*partSize)
	numbers := make([]string, 101)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i + 1)
	}
	signed := c.sign(s.ID, `{"numbers":[`+strings.Join(numbers[:100], ",")+`]}`)
	if len(signed) != 100 || signed[99].Number != 100 || signed[99].Size != partSize {
		t.Errorf("%d parts are signed, the last one is %+v", len(signed), signed[len(signed)-1])
	}
	c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[`+strings.Join(numbers, ",")+`]}`, 400, "1 to 100")
}

func TestInvalidPartNumbersAreRefused(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	s := c.plan("", 2*partSize)
	for _, numbers := range []string{"-1", "0", "3", "10001", "9223372036854775807", "9223372036854775808", "1.5", `"1"`, "null", "[1]", "1e99"} {
		c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[`+numbers+`]}`, 400)
	}
	for _, body := range []string{`{}`, `{"numbers":null}`, `{"numbers":1}`, `{"numbers":[1],"number":[1]}`, `[1]`, ``} {
		c.refused("POST", "/uploads/"+s.ID+"/parts", body, 400)
	}
	signed := c.sign(s.ID, `{"numbers":[1]}`)[0]
	for _, number := range []string{"0", "3", "-1", "01", "x", "1%2f2"} {
		p := signed
		p.URL = strings.Replace(p.URL, "/parts/1?", "/parts/"+number+"?", 1)
		if resp := c.put(p, nil); resp.StatusCode != 403 && resp.StatusCode != 404 {
			t.Errorf("a URL changed to part %s: status %d", number, resp.StatusCode)
		}
	}
}

func TestSessionLengthIsBounded(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	if !c.InStack() {
		c.onDisk(nil)
	}
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","length":%d}`, 1<<40), 201, &s)
	if s.Parts > blob.MaxParts || int64(s.Parts)*s.PartSize < 1<<40 {
		t.Errorf("a TiB has %d parts of %d bytes", s.Parts, s.PartSize)
	}
	if l := (blob.Layout{Length: files.MaxLength, PartSize: files.PartSize(files.MaxLength, 0)}); l.Check() != nil || l.Count() != blob.MaxParts {
		t.Errorf("the largest file has %d parts of %d bytes", l.Count(), l.PartSize)
	}
	for _, length := range []string{fmt.Sprint(int64(files.MaxLength) + 1), "9223372036854775807", "9223372036854775808", "-1", "1.5", `"1"`, "1e99"} {
		c.refused("POST", "/uploads", fmt.Sprintf(`{"name":"x","length":%s}`, length), 400, "length")
	}
	c.refused("POST", "/uploads", `{"name":"x","length":1,"i":"hello","c":""}`, 400, "parameter i", "c or m")
	c.refused("POST", "/uploads", `{"name":"x","length":1,"lang":"xx"}`, 400, "parameter lang", "en, it")
	if n := len(c.Sessions()); n != 1 {
		t.Errorf("there are %d sessions, want 1", n)
	}
	c.refused("POST", "/uploads", `{"name":"`+strings.Repeat("x", 64<<10)+`","length":1}`, 413)
}

func TestUnknownSessionIsNotFound(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	for _, id := range []string{"x", "1", "%2e%2e", "a%2Fb", "%00", strings.Repeat("x", 65), strings.Repeat("x", 2000), "upload%231"} {
		for _, what := range []struct{ method, rest, body string }{
			{"GET", "", ""}, {"DELETE", "", ""}, {"POST", "/complete", ""}, {"POST", "/parts", `{"numbers":[1]}`},
		} {
			c.refused(what.method, "/uploads/"+id+what.rest, what.body, 404)
		}
	}
}

func TestPartsOfADisabledOrRemovedUserAreRefused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(sessionCaller) error{
		"disabled": func(c sessionCaller) error { return c.Users.Disable(c.Context(), "ann") },
		"removed":  func(c sessionCaller) error { c.remove("ann"); return nil },
		"replaced": func(c sessionCaller) error { c.remove("ann"); c.AddUser("ann", password); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := beginSessions(t)
			c.InProcess("parts go to the store, which cannot ask")
			s := c.plan(`,"d":"bob"`, 1000)
			p := c.sign(s.ID, `{"numbers":[1]}`)[0]
			if err := end(c); err != nil {
				t.Fatal(err)
			}
			if resp := c.put(p, content(t, 1000)); resp.StatusCode != 403 {
				t.Errorf("a part: status %d (%s)", resp.StatusCode, resp.Header.Get("Ferry-Error"))
			}
		})
	}
}

// TestOpenSessionsOfAUserAreBounded begins sessions concurrently, ends some, and lets
// others expire.
func TestOpenSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
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
func (c sessionCaller) onDisk(free func() (int64, error)) {
	c.Helper()
	c.Data.Ports.Free = free
	s := httptest.NewServer(c.Service.Handler())
	c.Cleanup(s.Close)
	c.Base = s.URL + api.Prefix
}

func TestOpenSessionsFitTheDisk(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
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

// stream sends data in a session without a length, and states its length with the last part.
func (c sessionCaller) stream(s session, data []byte) {
	c.Helper()
	for n := 1; n == 1 || len(data) > int(s.PartSize)*(n-1); n++ {
		part, body := data[int(s.PartSize)*(n-1):], fmt.Sprintf(`{"numbers":[%d]}`, n)
		if len(part) >= int(s.PartSize) {
			part = part[:s.PartSize]
		} else {
			body = fmt.Sprintf(`{"numbers":[%d],"length":%d}`, n, len(data))
		}
		if resp := c.put(c.sign(s.ID, body)[0], part); resp.StatusCode != 200 {
			c.Fatalf("part %d: status %d (%s)", n, resp.StatusCode, resp.Header.Get("Ferry-Error"))
		}
	}
}

func TestLengthCanBeStatedAtTheEnd(t *testing.T) {
	t.Parallel()
	for what, length := range map[string]int{"empty": 0, "short": 1000, "one part": partSize, "three": 2*partSize + 1000} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := beginSessions(t)
			c.AddUser("eve", password, func(u *auth.User) { u.Quota = 3 * partSize })
			var s, usual session
			c.call("POST", "/uploads", `{"name":"x"}`, 201, &usual)
			c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","d":"eve","partSize":%d}`, partSize), 201, &s)
			if usual.PartSize != 64<<20 || usual.Parts != 0 || s.PartSize != partSize {
				t.Errorf("the sessions are %+v and %+v", usual, s)
			}
			data := content(t, length)
			c.stream(s, data)
			end := "/uploads/" + s.ID + "/complete"
			c.refused("POST", end, "", 400, "length is missing")
			c.refused("POST", end, fmt.Sprintf(`{"length":%d}`, length+1), 400, "missing")
			if length > partSize {
				c.refused("POST", end, fmt.Sprintf(`{"length":%d}`, partSize), 400, "more parts")
			}
			whole := fmt.Sprintf(`{"length":%d,"crc64nvme":%q}`, length, wire.CRC64Text(crc64nvme.Checksum(data)))
			c.wantFile(c.complete(s.ID, whole), data)
			c.wantFile(c.complete(s.ID, whole), data)
			if got := c.used("eve"); got != int64(length) {
				t.Errorf("%d bytes are used", got)
			}
		})
	}
}

// TestPartReplacedByAShorterLastOne sends the last part with the full size first.
func TestPartReplacedByAShorterLastOne(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","partSize":%d}`, partSize), 201, &s)
	c.stream(s, content(t, 2*partSize))
	data := content(t, partSize+7)
	c.stream(s, data)
	c.wantFile(c.complete(s.ID, fmt.Sprintf(`{"length":%d}`, len(data))), data)
}

func TestStreamStopsAtTheQuota(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	c.AddUser("eve", password, func(u *auth.User) { u.Quota = 2 * partSize })
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

func TestExpiredSessionTakesNothing(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	data := content(t, 1000)
	s := c.plan("", len(data))
	c.Clock.Advance(files.SessionLife - time.Minute)
	c = c.as("ann")
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	if resp := c.put(p, data); resp.StatusCode != 200 {
		t.Fatalf("a part in the last minute: status %d", resp.StatusCode)
	}
	c.Clock.Advance(time.Minute + time.Second)
	if resp := c.put(p, data); resp.StatusCode != 403 {
		t.Errorf("a part after that: status %d", resp.StatusCode)
	}
	for _, what := range []struct{ method, rest, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"POST", "/complete", ""}, {"POST", "/parts", `{"numbers":[1]}`},
	} {
		c.refused(what.method, "/uploads/"+s.ID+what.rest, what.body, 404, "expired")
	}
	var list struct{ Uploads []session }
	if c.call("GET", "/uploads", "", 200, &list); len(list.Uploads) != 0 {
		t.Errorf("the open sessions are %+v", list.Uploads)
	}
	c.wantNothingLeft()
}

func TestCompletedSessionTakesNoParts(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	c.InProcess("parts go to the store, which has its own answers")
	data := content(t, 1000)
	s := c.plan("", len(data))
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	c.put(p, data)
	c.complete(s.ID, "")
	c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1]}`, 409, "complete")
	if resp := c.put(p, content(t, 1000)); resp.StatusCode != 409 {
		t.Errorf("a part: status %d", resp.StatusCode)
	}
	c.wantFile(c.complete(s.ID, ""), data)
}

// TestOpenSessionReservesQuota checks that a session takes its room when it begins.
func TestOpenSessionReservesQuota(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	c.AddUser("eve", password, func(u *auth.User) { u.Quota = 10_000 })
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
	c := beginSessions(t)
	c.AddUser("eve", password, func(u *auth.User) { u.Quota = 10_000 })
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

// TestDestinationRemovedMidwayGetsNothing disables the destination user, removes the user,
// or adds another one of the same name.
func TestDestinationRemovedMidwayGetsNothing(t *testing.T) {
	t.Parallel()
	for what, goes := range map[string]func(sessionCaller){
		"disabled": func(c sessionCaller) {
			if err := c.Users.Disable(c.Context(), "dave"); err != nil {
				c.Fatal(err)
			}
		},
		"removed":  func(c sessionCaller) { c.remove("dave") },
		"replaced": func(c sessionCaller) { c.remove("dave"); c.AddUser("dave", password) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := beginSessions(t)
			c.AddUser("dave", password, func(u *auth.User) { u.Quota = 5000 })
			data := content(t, 1000)
			s := c.plan(`,"d":"dave"`, len(data))
			c.sendAll(s, data)
			goes(c)
			for range 2 {
				c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "destination user")
			}
			c.wantNothingLeft()
		})
	}
}

// TestRemovedUploaderLosesSessions adds a later user of the same name, who must not get them.
func TestRemovedUploaderLosesSessions(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	c.AddUser("eve", password, func(u *auth.User) { u.Quota = 5000 })
	eve := c.as("eve")
	data := content(t, 1000)
	own, forBob := eve.plan("", len(data)), eve.plan(`,"d":"bob"`, len(data))
	eve.sendAll(own, data)
	eve.sendAll(forBob, data)
	c.remove("eve")
	eve.refused("GET", "/uploads/"+own.ID, "", 401)
	c.AddUser("eve", password)
	eve = c.as("eve")
	for _, s := range []session{own, forBob} {
		eve.refused("GET", "/uploads/"+s.ID, "", 404)
		eve.refused("POST", "/uploads/"+s.ID+"/complete", "", 404)
		eve.refused("DELETE", "/uploads/"+s.ID, "", 404)
	}
	var list struct{ Uploads []session }
	if eve.call("GET", "/uploads", "", 200, &list); len(list.Uploads) != 0 {
		t.Errorf("the second eve has %+v", list.Uploads)
	}
	c.wantNothingLeft()
}

func TestDisabledUserCannotBeginASession(t *testing.T) {
	t.Parallel()
	c := beginSessions(t)
	if err := c.Users.Disable(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	c.refused("POST", "/uploads", `{"name":"x","length":1,"d":"bob"}`, 400, "parameter d")
	if err := c.Users.Disable(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	c.refused("POST", "/uploads", `{"name":"x","length":1}`, 401)
	if n := len(c.Sessions()); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// TestListedOriginsMaySendParts sends a browser's preflight for each route of sessions.
func TestListedOriginsMaySendParts(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	origins, err := envelope.ParseOrigins(app)
	if err != nil {
		t.Fatal(err)
	}
	s := apitest.New(t, func(_ *api.Settings, o *local.ServiceOptions) { o.Origins = origins })
	s.AddUser("ann", password)
	c := sessionCaller{s, s.Login("ann", password)}
	one := c.plan("", 3)
	p := c.sign(one.ID, `{"numbers":[1]}`)[0]
	for _, route := range [][2]string{
		{"POST", "/uploads"}, {"GET", "/uploads"}, {"GET", "/uploads/" + one.ID}, {"DELETE", "/uploads/" + one.ID},
		{"POST", "/uploads/" + one.ID + "/parts"}, {"POST", "/uploads/" + one.ID + "/complete"},
		{"PUT", strings.TrimPrefix(p.URL, c.Base)},
	} {
		for origin, allowed := range map[string]bool{app: true, "https://evil.example.com": false, app + ".evil.com": false, "null": false} {
			resp := c.Request("OPTIONS", route[1], nil, "Origin", origin, "Access-Control-Request-Method", route[0],
				"Access-Control-Request-Headers", "authorization,content-type,x-amz-checksum-crc64nvme")
			h := resp.Header
			if !allowed {
				if h.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s allows %s", route[0], route[1], origin)
				}
				continue
			}
			headers := strings.ToLower(h.Get("Access-Control-Allow-Headers"))
			if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != app || !strings.Contains(h.Get("Access-Control-Allow-Methods"), route[0]) ||
				!strings.Contains(headers, "authorization") || !strings.Contains(headers, "x-amz-checksum-crc64nvme") {
				t.Errorf("%s %s: status %d, %v", route[0], route[1], resp.StatusCode, h)
			}
		}
	}
	for origin, want := range map[string]string{app: app, "https://evil.example.com": ""} {
		resp := c.Request("PUT", strings.TrimPrefix(p.URL, c.Base), strings.NewReader("abc"), "Origin", origin)
		exposed, ok := strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "ETag"), resp.StatusCode == 200 && resp.Header.Get("ETag") != ""
		if ok != (want != "") || resp.Header.Get("Access-Control-Allow-Origin") != want || exposed != (want != "") {
			t.Errorf("a part from %s: status %d, %v", origin, resp.StatusCode, resp.Header)
		}
	}
}
