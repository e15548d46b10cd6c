package api_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/api/apitest"
)

// linkIn returns the path and query of the download link in a mail's text.
func linkIn(text, base string) string {
	_, rest, _ := strings.Cut(text, "\n"+base+"/download/file?")
	query, _, _ := strings.Cut(rest, "\n")
	if query == "" {
		return ""
	}
	return "/download/file?" + query
}

// TestANewcomersFirstTenMinutes walks the way that the README describes.
func TestANewcomersFirstTenMinutes(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("demo", "a password to try")
	bearer := s.Login("demo", "a password to try")

	stored := s.Put(bearer, "file=report.pdf&m=bob@example.com&i=the+report", "the content")
	if len(stored.Files) != 1 || stored.Files[0].Name != "report.pdf" || stored.Files[0].Length != 11 || stored.Files[0].ID != 1 {
		t.Fatalf("the upload answered %+v", stored)
	}
	link := strings.TrimPrefix(stored.Files[0].LinkURL, s.Base)
	if got := s.Text(s.Request("GET", link, nil)); got != "the content" {
		t.Fatalf("the link gave %q", got)
	}

	if n := s.Deliver(); n != 1 {
		t.Fatalf("%d notices were sent, want 1", n)
	}
	messages, err := s.Service.Inbox.List(t.Context(), 10)
	if err != nil || len(messages) != 1 {
		t.Fatalf("the inbox holds %+v, %v; want a mail", messages, err)
	}
	sent := linkIn(messages[0].Text, s.Base)
	if sent == "" || sent == link {
		t.Fatalf("the mail has the link %q; want one of its recipient's own: %s", sent, messages[0].Text)
	}
	if got := s.Text(s.Request("GET", sent, nil)); got != "the content" {
		t.Fatalf("the link in the mail gave %q", got)
	}

	gone := s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", "Bearer "+bearer), 200)
	s.Decode(s.Request("GET", link, nil), 401)
	backup := strings.TrimPrefix(gone.Files[0].LinkURL, s.Base)
	if got := s.Text(s.Request("GET", backup, nil)); got != "the content" {
		t.Fatalf("the backup link gave %q", got)
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", "Bearer "+bearer), 200)
	s.Decode(s.Request("GET", backup, nil), 401)
	if got := s.Text(s.Request("GET", link, nil)); got != "the content" {
		t.Fatalf("the link gave %q after the restore", got)
	}

	forgot := s.Decode(s.Request("GET", "/auth/forget?u=demo", nil), 200)
	s.Deliver()
	messages, err = s.Service.Inbox.List(t.Context(), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("reading the inbox: %v", err)
	}
	change := strings.TrimPrefix(forgot.LinkURL, s.Base)
	s.Decode(s.Request("POST", change+"&z=another+password", nil), 403)
	s.Decode(s.Request("POST", change+"&p="+pin(t, messages[0].Text)+"&z=another+password", nil), 200)
	s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+bearer), 401)
	s.Login("demo", "another password")

	s.Clock.Advance(31 * 24 * time.Hour)
	s.Decode(s.Request("GET", link, nil), 401)
	if r, err := s.Service.Sweep(t.Context()); err != nil || r.Moved != 1 {
		t.Fatalf("the sweep did %+v, %v; want one file moved", r, err)
	}
	s.Clock.Advance(91 * 24 * time.Hour)
	if r, err := s.Service.Sweep(t.Context()); err != nil || r.Purged != 1 {
		t.Fatalf("the sweep did %+v, %v; want one file purged", r, err)
	}
	if r, err := s.Service.Sweep(t.Context()); err != nil || r.Seen != 0 {
		t.Fatalf("the sweep did %+v, %v; want nothing left", r, err)
	}
}

// pin finds the eight digits in a mail.
func pin(t *testing.T, text string) string {
	t.Helper()
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(word) == 8 {
			return word
		}
	}
	t.Fatal("the mail has no PIN")
	return ""
}
