package upload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
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
		must(t, err)
		if resp := c.Do(r); resp.StatusCode != tc.status {
			t.Errorf("%d bytes: status %d, want %d", len(tc.data), resp.StatusCode, tc.status)
		}
		if tc.status != 200 {
			c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "missing, beginning with 1")
		}
	}
	c.wantFile(c.complete(s.ID, ""), data)
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
		c.notFound(id)
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
			must(t, end(c))
			c.wantPut(p, content(t, 1000), 403)
		})
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
	c.wantPut(p, data, 200)
	c.Clock.Advance(time.Minute + time.Second)
	c.wantPut(p, data, 403)
	c.notFound(s.ID, "expired")
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
	c.wantPut(p, content(t, 1000), 409)
	c.wantFile(c.complete(s.ID, ""), data)
}

// TestDestinationRemovedMidwayGetsNothing disables the destination user, removes the user,
// or adds another one of the same name.
func TestDestinationRemovedMidwayGetsNothing(t *testing.T) {
	t.Parallel()
	for what, goes := range map[string]func(sessionCaller){
		"disabled": func(c sessionCaller) {
			must(c.TB, c.Users.Disable(c.Context(), "dave"))
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
		eve.notFound(s.ID)
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
	must(t, c.Users.Disable(t.Context(), "bob"))
	c.refused("POST", "/uploads", `{"name":"x","length":1,"d":"bob"}`, 400, "parameter d")
	must(t, c.Users.Disable(t.Context(), "ann"))
	c.refused("POST", "/uploads", `{"name":"x","length":1}`, 401)
	if n := len(c.Sessions()); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}
