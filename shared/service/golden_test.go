package service_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/service/servicetest"
)

const password = "a password to try"

// trouble is all that an answer tells of trouble of the service's own.
const trouble = `^\{"status":500,"description":"Internal Server Error","apiver":"v1 \(3\.6\.0\)","time":"[^"]+ m=\+[\d.]+"\}\n$`

func TestTroubleOfTheServicesOwnIsAnsweredWithoutItsText(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	s.AddUser("alice", password)
	s.Calls.Before("table.GetMany", func() error { return fmt.Errorf("the secret text") })
	resp := s.Request("POST", "/auth/login", nil, "Authorization", servicetest.Basic("alice", password))
	body := s.Text(resp)
	if resp.StatusCode != 500 || !regexp.MustCompile(trouble).MatchString(body) {
		t.Errorf("the login is answered with %d %s", resp.StatusCode, body)
	}
	if all := fmt.Sprint(body, resp.Header); strings.Contains(all, "secret") {
		t.Errorf("the answer tells the error: %s", all)
	}
	if resp.Header.Get("Ferry-Error") != "" {
		t.Errorf("Ferry-Error is %q", resp.Header.Get("Ferry-Error"))
	}
	if !strings.Contains(s.Log.String(), "the secret text") || !strings.Contains(s.Log.String(), resp.Header.Get("X-Request-Id")) {
		t.Error("the log lacks the error or the request's id")
	}
	resp = s.Request("POST", "/oauth2/token", strings.NewReader("grant_type=password&username=alice&password=x"), "Content-Type", "application/x-www-form-urlencoded")
	want := `{"error":500,"error_description":"Internal server error","error_uri":"` + s.Base + `"}` + "\n"
	if body := s.Text(resp); resp.StatusCode != 500 || body != want {
		t.Errorf("the token endpoint answers %d %s, want %s", resp.StatusCode, body, want)
	}
}

func TestTheLogTellsNoSecret(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	link := s.Put(bearer, "file=x&i=the-message&m=bob@example.com", "hello").Files[0].LinkURL
	s.Request("GET", strings.TrimPrefix(link, s.Base), nil)
	change := s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200).LinkURL
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 2)
	if err != nil || len(messages) != 2 {
		t.Fatalf("the inbox has %d messages, %v", len(messages), err)
	}
	code := pin(t, messages[0].Text)
	s.Request("POST", strings.TrimPrefix(change, s.Base)+"&p="+code+"&z=a+new+password", nil)
	s.Request("POST", "/auth/login", nil, "Authorization", servicetest.Basic("alice", "the-wrong-one"))
	s.Request("POST", "/oauth2/token", strings.NewReader("grant_type=password&username=alice&password=the-wrong-one%zz"), "Content-Type", "application/x-www-form-urlencoded")
	s.Request("GET", "/download/file?k=%zz-the-wrong-one", nil)
	if n := strings.Count(s.Log.String(), "msg=request"); n < 8 {
		t.Fatalf("the log has %d requests:\n%s", n, s.Log)
	}
	_, linkToken, _ := strings.Cut(link, "k=")
	_, changeToken, _ := strings.Cut(change, "k=")
	for what, secret := range map[string]string{
		"a password": password, "a new password": "a+new+password", "a wrong password": "the-wrong-one", "a bearer": bearer,
		"a download token": linkToken, "a change token": changeToken, "a PIN": code, "a query": "u=alice", "a message": "the-message",
		"a credential": strings.TrimPrefix(servicetest.Basic("alice", password), "Basic "), "a piece of a form": "%zz",
	} {
		if strings.Contains(s.Log.String(), secret) {
			t.Errorf("the log holds %s:\n%s", what, s.Log)
		}
	}
}
