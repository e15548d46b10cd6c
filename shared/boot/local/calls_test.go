package local_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

type calls = map[string]int

// plus adds up calls.
func plus(all ...calls) calls {
	sum := calls{}
	for _, c := range all {
		for name, n := range c {
			sum[name] += n
		}
	}
	return sum
}

// TestARequestCostsAFixedNumberOfCalls checks what the table's page promises, with few
// users and files and with many.
func TestARequestCostsAFixedNumberOfCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		n       int
		options []apitest.Option
	}{
		{"an empty service", 0, nil},
		{"a service in use", 130, nil},
		{"a service whose events are recorded", 0, []apitest.Option{apitest.Listening}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			n, s := c.n, apitest.New(t, c.options...)
			s.CountAtOnce()
			s.AddUser("alice", password)
			s.AddUser("bob", password, func(u *auth.User) { u.Quota = 1 << 20 })
			s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
			bearer := s.Login("alice", password)
			for i := range n {
				s.AddUser(fmt.Sprintf("user%d", i), password)
			}
			s.Fill(bearer, n)
			countCalls(t, s, bearer)
		})
	}
}

func countCalls(t *testing.T, s *apitest.Server, token string) {
	bearer, basic := "Bearer "+token, apitest.Basic("alice", password)
	check := calls{"table.GetMany": 1} // a bearer, or a password
	id, object, commit, page := calls{"table.Update": 1}, calls{"blob.Create": 1}, calls{"table.Write": 1}, calls{"table.Query": 1}
	up := plus(check, id, object, commit, page)
	kept := calls{"table.GetMany": 1} // whether the files of the first are still there
	event := calls{}                  // of a download; all others are in a write that there is anyway
	if s.Data.Ports.Events {
		event = commit
	}
	claim, allowed := calls{"table.Write": 1}, calls{"table.Write": 1}
	read, open, written, complete, ended := calls{"table.Get": 1}, calls{"parts.Begin": 1}, calls{"parts.Write": 1}, calls{"parts.Complete": 1}, calls{"parts.Abort": 1}
	file := s.Put(token, "file=x", "hello").Files[0]
	s.Put(token, "file=y", "hello")
	link := strings.TrimPrefix(file.LinkURL, s.Base)
	notified := fmt.Sprintf("/files/%d", s.Put(token, "file=n&m=bob@example.com", "hello").Files[0].ID)
	awaited := strings.TrimPrefix(s.Put(token, "file=z&notify=1", "hello").Files[0].LinkURL, s.Base)
	forget := s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200)
	change := strings.TrimPrefix(forget.LinkURL, s.Base)
	own := begun(s, token, `{"name":"x","length":5}`)
	hashed := begun(s, token, fmt.Sprintf(`{"name":"x","length":5,"sha256":"%x"}`, sha256.Sum256([]byte("hello"))))
	another, limited, ending := begun(s, token, `{"name":"x","length":5,"d":"new"}`), begun(s, token, `{"name":"x","length":5,"d":"bob"}`), begun(s, token, `{"name":"x","length":5,"d":"bob"}`)
	for _, id := range []string{hashed, another, limited} {
		s.Text(s.Request("PUT", partOf(s, token, id), strings.NewReader("hello")))
	}
	part := partOf(s, token, own)
	stop := auth.StopLink("", "en", s.Data.Ports.Key.Stop("ann@example.com"))
	const form = "--b\r\nContent-Disposition: form-data; name=f; filename=1\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=f; filename=2\r\n\r\n2\r\n--b--\r\n"
	for _, c := range []struct {
		what, method, path, auth, body string
		want                           calls
	}{
		{"health", "GET", "/health", "", "", calls{"table.Get": 1}},
		{"the description", "GET", "/openapi.json", "", "", calls{}},
		{"an unknown path", "GET", "/nothing", "", "", calls{}},
		{"the page that stops mails", "GET", stop, "", "", calls{"table.Get": 1}},
		{"stopping mails", "POST", stop, "", "", calls{"table.Update": 1}},
		{"stopping mails again", "POST", stop, "", "", calls{"table.Update": 1, "table.Get": 1}},
		{"allowing mails again", "POST", stop, "form", "undo=1", calls{"table.Get": 1, "table.Write": 1}},
		{"allowing mails that are allowed", "POST", stop, "form", "undo=1", calls{"table.Get": 1}},
		{"stopping with a wrong token", "POST", stop + "x", "", "", calls{}},
		{"login", "POST", "/auth/login", basic, "", plus(check, calls{"table.Write": 1})},
		{"a first page", "GET", "/download/list", bearer, "", plus(check, page)},
		{"a page with a password", "GET", "/download/list", basic, "", plus(check, page)},
		{"a later page", "GET", "/download/list?limit=10&after=100", bearer, "", plus(check, page)},
		{"the backup area", "GET", "/download/list/backup", bearer, "", plus(check, page)},
		{"an upload", "POST", "/upload?file=x", bearer, "hello", up},
		{"an upload with a password", "PUT", "/upload?file=x", basic, "hello", up},
		{"an upload with notices", "POST", "/upload?file=x&m=bob@example.com&c=%2B393401234567", bearer, "hello", plus(up, allowed)},
		{"an upload with a receipt", "POST", "/upload?file=x&notify=1", bearer, "hello", up},
		{"an upload to another user", "POST", "/upload?file=x&d=new", bearer, "hello", plus(check, id, object, commit)},
		{"an upload under a quota", "POST", "/upload?file=x&d=bob", bearer, "hello", plus(check, id, object, commit)},
		{"an upload of two files", "POST", "/upload", bearer, form, plus(up, id, object)},
		{"an upload of two files with a notice each", "POST", "/upload?m=bob@example.com", bearer, form, plus(up, allowed, id, object, allowed)},
		{"an upload with a key", "POST", "/upload?file=x&key=1", bearer, "hello", plus(up, claim)},
		{"the same upload again", "POST", "/upload?file=x&key=1", bearer, "hello", plus(check, claim, calls{"table.Get": 1}, page)},
		{"another upload with its key", "POST", "/upload?file=y&key=1", bearer, "hello", plus(check, claim, calls{"table.Get": 1})},
		{"an upload to another user with a key", "POST", "/upload?file=x&d=new&key=2", bearer, "hello", plus(check, claim, id, object, commit)},
		{"the same upload to another user again", "POST", "/upload?file=x&d=new&key=2", bearer, "hello", plus(check, claim, read, kept)},
		{"an upload under a quota with a key", "POST", "/upload?file=x&d=bob&key=3", bearer, "hello", plus(check, claim, id, object, commit)},
		{"an upload that fails with a key", "POST", "/upload?file=x&d=nobody&key=4", bearer, "hello", plus(check, claim, id, calls{"table.Write": 1})},
		{"an upload with a wrong bearer", "POST", "/upload?file=x", "Bearer x", "hello", calls{}},
		{"an upload with an unknown bearer", "POST", "/upload?file=x", bearer[:7] + "AAAAAAAA" + bearer[15:], "hello", check},
		{"a new session", "POST", "/uploads", bearer, `{"name":"x","length":5}`, plus(check, id, open, commit)},
		{"a new session with a notice", "POST", "/uploads", bearer, `{"name":"x","length":5,"m":"bob@example.com"}`, plus(check, allowed, id, open, commit)},
		{"a new session for another user", "POST", "/uploads", bearer, `{"name":"x","length":5,"d":"new"}`, plus(check, id, open, commit)},
		{"a new session under a quota", "POST", "/uploads", bearer, `{"name":"x","length":5,"d":"bob"}`, plus(check, id, commit, open, commit)},
		{"a new session beyond a quota", "POST", "/uploads", bearer, `{"name":"x","length":5000000,"d":"bob"}`, plus(check, id)},
		{"a new session with no room left", "POST", "/uploads", bearer, `{"name":"x","length":1048570,"d":"bob"}`, plus(check, id, commit, page)},
		{"a new session with a key", "POST", "/uploads?&key=5", bearer, `{"name":"x","length":5}`, plus(check, claim, id, open, commit)},
		{"the same session again", "POST", "/uploads?&key=5", bearer, `{"name":"x","length":5}`, plus(check, claim, read, read)},
		{"another session with its key", "POST", "/uploads?&key=5", bearer, `{"name":"x","length":6}`, plus(check, claim, read)},
		{"a new session that fails with a key", "POST", "/uploads?&key=6", bearer, `{"name":"x","length":5,"d":"nobody"}`, plus(check, claim, id, calls{"table.Write": 1})},
		{"an invalid new session", "POST", "/uploads", bearer, `{"length":5}`, check},
		{"a part's URL", "POST", own + "/parts", bearer, `{"numbers":[1]}`, plus(check, read, calls{"parts.Sign": 1})},
		{"a completion without its part", "POST", own + "/complete", bearer, "", plus(check, read, read, complete)},
		{"a part", "PUT", part, "", "hello", plus(read, read, written)},
		{"a part that is too short", "PUT", part, "", "hell", plus(read, read, written)},
		{"a part with another signature", "PUT", part + "x", "", "hello", calls{}},
		{"the part again", "PUT", part, "", "hello", plus(read, read, written)},
		{"a session", "GET", own, bearer, "", plus(check, read, calls{"parts.List": 1})},
		{"the sessions", "GET", "/uploads", bearer, "", plus(check, page)},
		{"a completion", "POST", own + "/complete", bearer, "", plus(check, read, read, complete, commit, ended, page)},
		{"the completion again", "POST", own + "/complete", bearer, "", plus(check, read, kept, page)},
		{"a session that is complete", "GET", own, bearer, "", plus(check, read)},
		{"ending a session that is complete", "DELETE", own, bearer, "", plus(check, read)},
		{"a completion with a hash", "POST", hashed + "/complete", bearer, "", plus(check, read, read, complete, calls{"blob.Open": 1}, commit, ended, page)},
		{"a completion for another user", "POST", another + "/complete", bearer, "", plus(check, read, read, complete, commit, ended)},
		{"that completion again", "POST", another + "/complete", bearer, "", plus(check, read, kept)},
		{"a completion under a quota", "POST", limited + "/complete", bearer, "", plus(check, read, read, complete, commit, ended)},
		{"ending a session under a quota", "DELETE", ending, bearer, "", plus(check, read, commit, ended)},
		{"a session that has ended", "GET", ending, bearer, "", plus(check, read)},
		{"a download", "GET", link, "", "", plus(calls{"table.Get": 1, "blob.Open": 1}, commit, event)},
		{"a first download with a receipt", "GET", awaited, "", "", plus(calls{"table.Get": 2, "blob.Open": 1}, commit, event)},
		{"the next download of that file", "GET", awaited, "", "", plus(calls{"table.Get": 1, "blob.Open": 1}, commit, event)},
		{"a robot's download", "GET", awaited, "robot", "", plus(calls{"table.Get": 1, "blob.Open": 1}, commit)},
		{"a robot's page", "GET", awaited + "&page", "robot html", "", plus(calls{"table.Get": 1}, commit)},
		{"a part of a download", "GET", link, "range", "", calls{"table.Get": 1, "blob.Open": 1}},
		{"the head of a download", "HEAD", link, "", "", calls{"table.Get": 1, "blob.Open": 1}},
		{"a page of a download", "GET", link, "html", "", calls{"table.Get": 1}},
		{"a record of a download", "GET", link, "json", "", calls{"table.Get": 1}},
		{"a wrong link", "GET", "/download/file?k=x", "", "", calls{"table.Get": 1}},
		{"the details of a file", "GET", fmt.Sprintf("/files/%d", file.ID), bearer, "", plus(check, calls{"table.Get": 1, "table.GetMany": 1})},
		{"the details of a file and its notices", "GET", notified, bearer, "", plus(check, calls{"table.Get": 1, "table.GetMany": 2})},
		{"the details of a file that was sent", "GET", "/files/1?d=new", bearer, "", plus(check, calls{"table.Get": 1, "table.GetMany": 1})},
		{"a deletion", "DELETE", fmt.Sprintf("/files/%d", file.ID), bearer, "", plus(check, calls{"table.Get": 1, "blob.Copy": 1, "table.GetMany": 1, "table.Write": 2, "blob.Delete": 1})},
		{"a restoration", "POST", fmt.Sprintf("/files/%d/restore", file.ID), bearer, "", plus(check, calls{"table.Get": 1, "blob.Copy": 1, "table.GetMany": 1, "table.Write": 2, "blob.Delete": 1})},
		{"forget", "GET", "/auth/forget?u=alice", "", "", plus(check, commit)},
		{"a check of a change", "POST", change + "&p=00000000", "", "", calls{"table.Get": 1, "table.Write": 1}},
		{"first access", "POST", "/auth/first", apitest.Basic("new", password), "", plus(check, commit)},
		{"a revocation", "POST", "/oauth2/revoke", "form", "token=x", commit},
		{"a wrong password", "POST", "/auth/login", apitest.Basic("alice", "wrong"), "", plus(check, commit)},
		{"a password with failures on record", "POST", "/auth/login", basic, "", plus(check, commit)},
	} {
		headers := []string{"Authorization", c.auth}
		switch c.auth {
		case "range":
			headers = []string{"Range", "bytes=1-2"}
		case "robot":
			headers = []string{"User-Agent", "Slackbot 1.0"}
		case "robot html":
			headers = []string{"User-Agent", "Slackbot 1.0", "Accept", "text/html"}
		case "html":
			headers = []string{"Accept", "text/html"}
		case "json":
			headers = []string{"Accept", "application/json"}
		case "form":
			headers = []string{"Content-Type", "application/x-www-form-urlencoded"}
		}
		if _, key, ok := strings.Cut(c.path, "&key="); ok {
			headers = append(headers, "Idempotency-Key", key)
		}
		if c.body == form {
			headers = append(headers, "Content-Type", "multipart/form-data; boundary=b")
		}
		s.Calls.Reset()
		resp := s.Request(c.method, c.path, strings.NewReader(c.body), headers...)
		if got := s.Calls.Reset(); !maps.Equal(got, c.want) {
			t.Errorf("%s (status %d) costs %v, want %v", c.what, resp.StatusCode, got, c.want)
		}
	}
}

// begun begins a session and returns its path.
func begun(s *apitest.Server, bearer, plan string) string {
	s.Helper()
	resp := s.Request("POST", "/uploads", strings.NewReader(plan), "Authorization", "Bearer "+bearer)
	if resp.StatusCode != 201 {
		s.Fatalf("beginning a session: status %d (%s)", resp.StatusCode, resp.Header.Get("Ferry-Error"))
	}
	return strings.TrimPrefix(resp.Header.Get("Location"), s.Base)
}

// partOf returns the path for the only part of a session.
func partOf(s *apitest.Server, bearer, session string) string {
	s.Helper()
	var out struct{ Parts []struct{ URL string } }
	resp := s.Request("POST", session+"/parts", strings.NewReader(`{"numbers":[1]}`), "Authorization", "Bearer "+bearer)
	if err := json.Unmarshal([]byte(s.Text(resp)), &out); err != nil || len(out.Parts) != 1 {
		s.Fatalf("asking for a part: status %d, %v", resp.StatusCode, err)
	}
	return strings.TrimPrefix(out.Parts[0].URL, s.Base)
}
