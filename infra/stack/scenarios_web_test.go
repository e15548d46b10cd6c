package stack

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/account"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/bundle"
	"ferry/shared/files"
	"ferry/shared/identity"
)

// own is what a browser sends with the forms of the service's pages. Without a name it would be a robot.
func own() func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("User-Agent", "Mozilla/5.0 Firefox/143.0")
	}
}

// asks sends requests to an endpoint that pages ask, on the ports of their function.
func (s *stage) asks(e api.Endpoint, send func()) {
	s.Helper()
	pages := s.endpoint
	s.serve(e)
	send()
	s.serve(pages)
}

// login returns the cookie that a browser gets.
func (s *stage) login(name string) func(*http.Request) {
	s.Helper()
	as := form(url.Values{"user": {name}, "password": {boottest.Password}})
	cookie, _, _ := strings.Cut(s.must(303, "POST", "/login", own(), as).Get("Set-Cookie"), ";")
	return header("Cookie", cookie)
}

// pages opens the pages, sends their forms, and asks what they ask of the interface.
func pages(s *stage) {
	s.outdated()
	s.ports.LinkBytes = 1 // what a link gives is noted at once
	as := func(name string) func(string) func(*http.Request) {
		return func(password string) func(*http.Request) {
			return form(url.Values{"user": {name}, "password": {password}})
		}
	}
	s.guesses("POST", "/login", as("alice"), own())
	s.must(303, "POST", "/login", own(), as("carol")(boottest.Password))
	s.must(303, "POST", "/login", own(), as("bob")(boottest.Temporary))
	s.landing()
	for range identity.MaxTokens + 1 { // the last one ends the first
		s.login("alice")
	}
	cookie := s.login("alice")
	s.send("alice", files.Sending{Recipients: []files.Message{{Channel: files.Mail, To: "carla@example.com"}}})
	sent := fmt.Sprint("id=", s.get("alice").LastFile)
	for _, page := range []string{
		"send",
		"send?sent=1&sent=3",
		"qr?k=" + s.real.Key.File(blob.Files, "alice", 1),
		"account",
		"files",
		"files?q=a",
		"files?" + sent,
		"files?area=backup",
		"files?area=backup&id=2",
		"requests",
	} {
		s.must(200, "GET", "/"+page, cookie)
	}
	do := func(status int, page string, fields ...string) {
		s.Helper()
		values := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			values.Set(fields[i], fields[i+1])
		}
		s.must(status, "POST", "/"+page, own(), cookie, form(values))
	}
	do(201, "account", "do", "token", "name", "a", "scope", "upload")
	last, err := s.lazy().Get(s.Context(), s.get("alice"), blob.Files, s.get("alice").LastFile)
	s.check(err)
	s.overtake(last.ID)
	do(303, "files", "id", fmt.Sprint(last.ID), "link", last.Recipients[0], "next", "files", "to", "dora@example.com")
	s.must(200, "GET", "/r?k="+s.request(), own())
	s.ahead += 2 * 24 * time.Hour // the use of the cookie is recorded
	s.must(200, "GET", "/account", cookie)
	do(303, "logout")
	s.asks(account.Stop(), func() { notificationsStop(s) })
	s.user("mia", nil)
	mia := basic("mia", boottest.Password)
	s.asks(account.Me(), func() {
		change := content("application/json", `{"old":"`+boottest.Password+`","new":"another way to go"}`)
		s.must(204, "POST", "/me/password", mia, change)
	})
	s.asks(account.Tokens(), func() { s.must(204, "DELETE", "/tokens", basic("alice", boottest.Password)) })
	s.asks(account.Change(), func() { authChange(s) })
	s.asks(account.Forget(), func() { authForget(s) })
}

// landing opens the pages of a bundle and of texts, one of them with a limit and a password, in both
// areas, and without the bytes.
func (s *stage) landing() {
	s.Helper()
	all := s.texts()
	open := func(area blob.Area, param string) {
		for _, id := range all {
			token := s.real.Key.File(area, "alice", id)
			s.must(200, "GET", "/l?"+param+"="+token, own())
		}
	}
	open(blob.Files, "k")
	s.guard(blob.Files, all[2], 2, s.hash())
	s.guesses("POST", "/l", func(password string) func(*http.Request) {
		return form(url.Values{"k": {s.real.Key.File(blob.Files, "alice", all[2])}, "password": {password}})
	}, own())
	s.delete(all)
	open(blob.Backup, "z")
	s.lose(blob.Files)
	s.mustFail("GET", "/l?z="+s.real.Key.File(blob.Backup, "alice", all[0]), own())
}

// texts stores a bundle and two texts, and returns their ids.
func (s *stage) texts() []int64 {
	s.Helper()
	var archive bytes.Buffer
	w := bundle.NewWriter(&archive)
	s.check(w.Add(bundle.Entry{Path: "a.txt"}, []byte("hello")))
	s.check(w.Close())
	for _, part := range []files.Part{
		{
			Name:     "a.zip",
			Body:     &archive,
			Size:     -1,
			Contents: &files.Contents{Entries: 1},
		}, {Name: "b.txt", Body: strings.NewReader("hello"), Size: 5},
		{Name: "c.txt", Body: strings.NewReader("hello"), Size: 5},
	} {
		s.store("alice", files.Sending{}, part)
	}
	last := s.get("alice").LastFile
	return []int64{last - 2, last - 1, last}
}

// delete moves files of alice to the backup area; their bytes follow later.
func (s *stage) delete(all []int64) {
	s.Helper()
	for _, id := range all {
		_, err := s.lazy().Delete(s.Context(), s.get("alice"), id)
		s.check(err)
	}
}
