package local_test

import (
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

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
