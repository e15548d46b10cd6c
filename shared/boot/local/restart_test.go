package local_test

import (
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

func TestARestartKeepsEverythingAndReusesNoID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := apitest.Open(t, dir)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	first := s.Put(bearer, "file=a", "one").Files[0]
	link := strings.TrimPrefix(first.LinkURL, s.Base)
	s.Put(bearer, "file=b&m=bob@example.com", "two")
	// The newest file is removed for good: its id must not be used again either.
	s.Put(bearer, "file=c", "three")
	s.Decode(s.Request("DELETE", "/files/3", nil, "Authorization", "Bearer "+bearer), 200)
	// A failed upload has taken an id, too.
	s.Request("POST", "/upload?file=d", strings.NewReader("four"), "Authorization", "Bearer "+bearer, "Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:")
	s.Close()

	s = apitest.Open(t, dir)
	if got := s.Text(s.Request("GET", link, nil)); got != "one" {
		t.Errorf("the earlier link gives %q", got)
	}
	list := s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+bearer), 200)
	if len(list.Files) != 2 || !strings.HasSuffix(list.Files[1].LinkURL, link) {
		t.Errorf("the list has %+v", list.Files)
	}
	if n := s.Deliver(); n != 1 {
		t.Errorf("%d notices were left, want 1", n)
	}
	if id := s.Put(bearer, "file=e", "five").Files[0].ID; id < 4 {
		t.Errorf("the id %d was used before", id)
	}
}

func TestANewUserWithAnOldNameGetsNothingOfTheOldUser(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	change := strings.TrimPrefix(s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200).LinkURL, s.Base)
	link := strings.TrimPrefix(s.Put(bearer, "file=a", "one").Files[0].LinkURL, s.Base)
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	code := pin(t, messages[0].Text)

	check(t, s.Users.Disable(t.Context(), "alice"))
	if _, err := file.Service(s.Data.Ports).RemoveAll(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	check(t, s.Users.Remove(t.Context(), "alice"))
	s.Decode(s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", password)), 401)

	s.AddUser("alice", "a password of her own", func(u *auth.User) { u.Email = "another@example.com" })
	s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+bearer), 401)
	s.Decode(s.Request("GET", link, nil), 401)
	s.Decode(s.Request("POST", change+"&p="+code+"&z=taken+over+by+the+old", nil), 401)
	s.Decode(s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", password)), 401)
	if id := s.Put(s.Login("alice", "a password of her own"), "file=b", "two").Files[0].ID; id != 2 {
		t.Errorf("the first file of the new user has the id %d, want 2", id)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
