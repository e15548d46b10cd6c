package local_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// logged sends requests from 203.0.113.7 and returns the lines that they log.
type logged struct {
	*apitest.Server
	log  strings.Builder
	sent []string // what no line may show
}

func newLogged(t *testing.T) *logged {
	l := &logged{Server: apitest.New(t)}
	l.InProcess("the log is of one process")
	l.AddUser("alice", password)
	l.Data.Ports.Log = slog.New(slog.NewJSONHandler(&l.log, nil))
	l.Restart()
	return l
}

func (l *logged) send(method, path, body string, headers ...string) (status int, lines []map[string]any) {
	l.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "203.0.113.7:54321"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if scheme, value, found := strings.Cut(headers[i+1], " "); found && scheme != "" {
			l.sent = append(l.sent, value)
		}
	}
	w := httptest.NewRecorder()
	l.log.Reset()
	l.HTTP.Config.Handler.ServeHTTP(w, r)
	text := l.log.String()
	for _, secret := range append(l.sent, r.URL.RawQuery, password) {
		if secret != "" && strings.Contains(text, secret) {
			l.Errorf("the log shows %q: %s", secret, text)
		}
	}
	for line := range strings.Lines(text) {
		var fields map[string]any
		expect.NoErr(l.TB, json.Unmarshal([]byte(line), &fields))
		lines = append(lines, fields)
	}
	return w.Code, lines
}

func TestTheAccessLogTellsWhoCameFromWhereAndHow(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	alice := l.As("alice")
	link := strings.TrimPrefix(alice.Upload("file=x", "abc").LinkURL, l.Root)
	_, part := session(alice, `{"name":"x","length":3}`)
	basic, bearer := []string{"Authorization", apitest.Basic("alice", password)}, []string{"Authorization", "Bearer " + alice.Bearer}
	for _, c := range []struct {
		login, user        string
		method, path, body string
		headers            []string
	}{
		{"basic", "alice", "GET", "/v1/download/list", "", basic},
		{"basic", "alice", "POST", "/v1/auth/login", "", basic},
		{"bearer", "alice", "GET", "/v1/download/list?limit=1", "", bearer},
		{"link", "alice", "GET", link, "", nil},
		{"session", "alice", "PUT", strings.TrimPrefix(part, l.Root), "abc", nil},
		{"password", "alice", "POST", "/v1/oauth2/token", "grant_type=password&username=alice&password=" + url.QueryEscape(password),
			[]string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"", "", "GET", "/v1/health", "", nil},
		{"", "", "GET", "/nothing?k=secret", "", nil},
	} {
		_, lines := l.send(c.method, c.path, c.body, c.headers...)
		if len(lines) != 1 {
			t.Errorf("%s %s logs %v", c.method, c.path, lines)
			continue
		}
		line := lines[0]
		login, _ := line["login"].(string)
		user, _ := line["user"].(string)
		if _, timed := line["ms"].(float64); line["msg"] != "request" || line["address"] != "203.0.113.7" || login != c.login || user != c.user || !timed {
			t.Errorf("%s %s logs %v", c.method, c.path, line)
		}
	}
}

func TestEachRefusedLoginIsALineOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	_, token, _ := strings.Cut(l.Send("GET /auth/forget?u=alice", "").Want(200).LinkURL, "k=")
	guess := []string{"Authorization", apitest.Basic("alice", "a wrong password")}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		login, user        string // empty: the line has none
		method, path, body string
		headers            []string
	}{
		{"basic", "alice", "GET", "/v1/download/list", "", guess},
		{"basic", "alice", "POST", "/v1/auth/login", "", guess},
		{"basic", "", "POST", "/v1/auth/login", "", []string{"Authorization", apitest.Basic("a password typed as name", "x")}},
		{"password", "alice", "POST", "/v1/oauth2/token", "grant_type=password&username=alice&password=wrong", form},
		{"bearer", "", "GET", "/v1/download/list", "", []string{"Authorization", "Bearer invented"}},
		{"link", "", "GET", "/v1/download/file?k=invented", "", nil},
		{"pin", "alice", "POST", "/v1/auth/change", "k=" + token + "&p=00000000", form},
	} {
		status, lines := l.send(c.method, c.path, c.body, c.headers...)
		if len(lines) != 2 || status != 401 {
			t.Errorf("%s %s answers %d and logs %v", c.method, c.path, status, lines)
			continue
		}
		line := lines[1]
		user, _ := line["user"].(string)
		if line["msg"] != "login refused" || line["level"] != "WARN" || line["address"] != "203.0.113.7" || line["login"] != c.login ||
			user != c.user || line["id"] != lines[0]["id"] {
			t.Errorf("%s %s logs %v", c.method, c.path, line)
		}
		if strings.Contains(l.log.String(), "typed") {
			t.Errorf("the log shows an unknown name: %s", &l.log)
		}
	}
	_, lines := l.send("PUT", "/v1/upload?file=x", "abc", "Authorization", apitest.Basic("alice", password), "Repr-Digest", "sha-256=:AAAA:")
	expect.Equal(t, "lines of a request that is refused after the login", len(lines), 1)
	for i := range 10 {
		l.send("POST", "/v1/auth/login", "", "Authorization", apitest.Basic("alice", fmt.Sprint("guess ", i)))
	}
	other := apitest.Basic("alice", "another wrong password")
	if status, lines := l.send("POST", "/v1/auth/login", "", "Authorization", other); status != 429 || len(lines) != 2 || lines[1]["msg"] != "login refused" {
		t.Errorf("a login that must wait answers %d and logs %v", status, lines)
	}
	for _, path := range []string{"/v1/download/list", "/v1/download/file", "/v1/nothing"} {
		if status, lines := l.send("GET", path, ""); len(lines) != 1 {
			t.Errorf("%s without a credential answers %d and logs %v", path, status, lines)
		}
	}
}
