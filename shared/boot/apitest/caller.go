package apitest

import (
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/users"
)

// Password is the password of the users that Begin adds.
const Password = "a password to try"

// Caller is a user who has logged in.
type Caller struct {
	*Server
	Name, Bearer string
}

// Begin starts a service with the active users ann and bob, and returns ann.
func Begin(t testing.TB, options ...Option) Caller {
	t.Helper()
	return New(t, options...).Begin()
}

// Begin returns ann. If there are no users yet, it adds ann and bob.
func (s *Server) Begin() Caller {
	s.Helper()
	if len(s.Partitions("user#")) == 0 {
		s.AddUser("ann", Password)
		s.AddUser("bob", Password)
	}
	return s.As("ann")
}

// As logs in a user with Password, and returns the user.
func (s *Server) As(name string) Caller {
	s.Helper()
	return Caller{s, name, s.Login(name, Password)}
}

// Add adds an active user with Password, and logs in as that user.
func (s *Server) Add(name string, change ...func(*users.User)) Caller {
	s.Helper()
	s.AddUser(name, Password, change...)
	return s.As(name)
}

// Quota returns a change that gives a user a quota in bytes.
func Quota(n int64) func(*users.User) { return func(u *users.User) { u.Quota = n } }

// Ask sends a request like "GET /me" with the caller's bearer, unless a header says otherwise.
func (c Caller) Ask(request, body string, headers ...string) Answer {
	c.Helper()
	return c.Send(request, body, append([]string{"Authorization", "Bearer " +
		c.Bearer}, headers...)...)
}

// Upload stores a raw body, and returns the file as the answer shows it.
func (c Caller) Upload(query, content string, headers ...string) File {
	c.Helper()
	return c.Ask("POST /upload?"+query, content, headers...).Want(200).File()
}

// Fill uploads n small files.
func (c Caller) Fill(n int) {
	c.Helper()
	for range n {
		c.Upload("file=x", "x")
	}
}

// Send sends a request like "GET /health", or to a whole URL. Headers are pairs.
func (s *Server) Send(request, body string, headers ...string) Answer {
	s.Helper()
	method, path, _ := strings.Cut(request, " ")
	resp := s.Request(method, path, strings.NewReader(body), headers...)
	a := Answer{
		Code:    resp.StatusCode,
		Header:  resp.Header,
		Text:    s.Text(resp),
		s:       s,
		request: request,
	}
	_ = json.Unmarshal([]byte(a.Text), &a.Envelope) // other answers are not envelopes
	return a
}

// Form writes a form, and returns it with its media type. Names and values alternate; @NAME is a file of that name.
func Form(fields ...string) (body, mediaType string) {
	var b strings.Builder // which never fails
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if name, isFile := strings.CutPrefix(fields[i], "@"); isFile {
			part, _ := w.CreateFormFile("file", name)
			_, _ = io.WriteString(part, fields[i+1])
		} else {
			_ = w.WriteField(fields[i], fields[i+1])
		}
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

// Get returns what a link gives.
func (s *Server) Get(link string) string {
	s.Helper()
	a := s.Send("GET "+link, "")
	if s.InStack() && a.Code == 302 { // the store itself sends a large file
		a = s.Send("GET "+a.Header.Get("Location"), "")
	}
	return a.Want(200).Text
}

// Answer is a response that was read, as an envelope too if it is one.
type Answer struct {
	Envelope
	Code    int
	Header  http.Header
	Text    string
	s       *Server
	request string
}

// Want checks the status and, for a refusal, that it gives a reason with these words.
func (a Answer) Want(status int, words ...string) Answer {
	a.s.Helper()
	says := a.Header.Get("Ferry-Error")
	if a.Code != status ||
		a.Status != 0 && (a.Status != status || says == "" && status != 500) {
		a.s.Errorf("%.200s: status %d, want %d (%s) %.200s",
			a.request, a.Code, status, says, a.Text)
	}
	for _, w := range words {
		if !strings.Contains(says, w) {
			a.s.Errorf("%.200s: %q does not say %q", a.request, says, w)
		}
	}
	return a
}

// WantHeaders checks headers, in pairs.
func (a Answer) WantHeaders(pairs ...string) Answer {
	a.s.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := a.Header.Get(pairs[i]); got != pairs[i+1] {
			a.s.Errorf("%.200s: %s is %q, want %q", a.request, pairs[i], got, pairs[i+1])
		}
	}
	return a
}

// File returns the file that a request stored, or the first of an answer: others may have uploaded since.
func (a Answer) File() File {
	a.s.Helper()
	if len(a.Files) == 0 {
		a.s.Fatalf("%s: there is no file in %s", a.request, a.Text)
	}
	first, _, _ := strings.Cut(a.Header.Get("Ferry-Files"), ",")
	stored := slices.IndexFunc(a.Files, func(f File) bool {
		return strconv.FormatInt(f.ID, 10) == first
	})
	return a.Files[max(stored, 0)]
}

// Read reads an answer's JSON.
func Read[T any](a Answer) (v T) {
	a.s.Helper()
	check(a.s.TB, a.request+": reading "+a.Text, json.Unmarshal([]byte(a.Text), &v))
	return v
}
