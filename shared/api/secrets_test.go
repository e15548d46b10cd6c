package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/api/apitest"
	"ferry/shared/auth"
)

// TestWhoReadsTheTableCanUseNothingOfIt looks for each secret in all items.
func TestWhoReadsTheTableCanUseNothingOfIt(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.AddUser("alice", password)
	s.AddUser("new", "temporary one", func(u *auth.User) { u.State = auth.FirstAccess })
	bearer := s.Login("alice", password)
	auth := "Bearer " + bearer
	link := func(e apitest.Envelope) string { return e.Files[0].LinkURL }

	secrets := map[string]string{"a password": password, "a temporary password": "temporary one", "a bearer": bearer}
	first := s.Put(bearer, "file=a&m=bob@example.com&c=%2B393401234567", "x")
	secrets["a link"] = after(t, link(first), "k=")
	secrets["a link of the backup area"] = after(t, link(s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", auth), 200)), "z=")
	secrets["a link of a file brought back"] = after(t, link(s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 200)), "k=")
	secrets["a link that was used"] = after(t, link(s.Put(bearer, "file=b", "y")), "k=")
	s.Request("GET", "/download/file?k="+secrets["a link that was used"], nil)
	secrets["a change token"] = after(t, s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200).LinkURL, "k=")
	secrets["a first change token"] = after(t, s.Decode(s.Request("POST", "/auth/first", nil, "Authorization", apitest.Basic("new", "temporary one")), 200).LinkURL, "k=")
	s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", "a wrong password"))
	secrets["a wrong password"] = "a wrong password"

	// The notices are looked at before they are sent, when they wait in the outbox.
	look(t, s, secrets)
	if n := s.Deliver(); n != 3 {
		t.Fatalf("%d notices were sent, want 3", n)
	}
	messages, err := s.Service.Inbox.List(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(m.To, "alice") {
			secrets["a PIN"] = pin(t, m.Text)
		}
	}
	s.Request("POST", "/auth/change?k="+secrets["a change token"]+"&p=00000000", nil)
	key, err := os.ReadFile(filepath.Join(s.Dir, "link.key"))
	if err != nil {
		t.Fatal(err)
	}
	secrets["the key"] = strings.TrimSpace(string(key))
	look(t, s, secrets)
}

// after returns what follows a mark.
func after(t *testing.T, text, mark string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, mark)
	if !ok {
		t.Fatalf("%q has no %s", text, mark)
	}
	return rest
}

func look(t *testing.T, s *apitest.Server, secrets map[string]string) {
	t.Helper()
	items := s.Items()
	if len(items) < 10 {
		t.Fatalf("the table has %d items only", len(items))
	}
	for key, item := range items {
		if strings.HasPrefix(key, "inbox ") {
			continue // it stands in for what has left the service
		}
		for what, secret := range secrets {
			if strings.Contains(key, secret) || strings.Contains(item, secret) {
				t.Errorf("%s stands in the item %s: %s", what, key, item)
			}
		}
	}
}
