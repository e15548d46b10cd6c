package local_test

import (
	"cmp"
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

// each sends the requests of a table, whose rows are LOGIN USER | REQUEST | HEADER | BODY, and checks the last of the
// lines that each logs. A dash stands for no login and no user.
func (l *logged) each(lines int, message, table string, replace ...string) {
	l.Helper()
	for row := range strings.SplitSeq(strings.NewReplacer(replace...).Replace(strings.TrimSpace(table)), "\n") {
		cells := append(strings.Split(row, "|"), "", "")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		method, path, _ := strings.Cut(cells[1], " ")
		name, value, _ := strings.Cut(cells[2], ": ")
		status, all := l.send(method, path, cells[3], name, value)
		if len(all) != lines {
			l.Errorf("%s answers %d and logs %v", cells[1], status, all)
			continue
		}
		line := all[lines-1]
		text := func(name string) string {
			v, _ := line[name].(string)
			return cmp.Or(v, "-")
		}
		_, timed := all[0]["ms"].(float64)
		if !timed || text("msg") != message || text("address") != "203.0.113.7" || line["id"] != all[0]["id"] ||
			text("login")+" "+text("user") != strings.Join(strings.Fields(cells[0]), " ") {
			l.Errorf("%s logs %v", cells[1], all)
		}
		if refused := lines == 2; refused && (status != 401 || text("level") != "WARN") {
			l.Errorf("%s answers %d and logs %v", cells[1], status, line)
		}
	}
}

const form = "Content-Type: application/x-www-form-urlencoded"

func TestTheAccessLogTellsWhoCameFromWhereAndHow(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	alice := l.As("alice")
	link := strings.TrimPrefix(alice.Upload("file=x", "abc").LinkURL, l.Root)
	_, part := session(alice, `{"name":"x","length":3}`)
	l.each(1, "request", `
		basic alice    | GET /v1/download/list         | Authorization: $basic
		basic alice    | POST /v1/auth/login           | Authorization: $basic
		bearer alice   | GET /v1/download/list?limit=1 | Authorization: Bearer $bearer
		link alice     | GET $link
		session alice  | PUT $part                     | | abc
		password alice | POST /v1/oauth2/token         | $form | grant_type=password&username=alice&password=$password
		- -            | GET /v1/health
		- -            | GET /nothing?k=secret`,
		"$basic", apitest.Basic("alice", password), "$bearer", alice.Bearer, "$link", link,
		"$part", strings.TrimPrefix(part, l.Root), "$form", form, "$password", url.QueryEscape(password))
}

func TestEachRefusedLoginIsALineOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	l.sent = []string{"typed"}
	_, token, _ := strings.Cut(l.Send("GET /auth/forget?u=alice", "").Want(200).LinkURL, "k=")
	l.each(2, "login refused", `
		basic alice    | GET /v1/download/list | Authorization: $guess
		basic alice    | POST /v1/auth/login   | Authorization: $guess
		basic -        | POST /v1/auth/login   | Authorization: $unknown
		password alice | POST /v1/oauth2/token | $form | grant_type=password&username=alice&password=wrong
		bearer -       | GET /v1/download/list | Authorization: Bearer invented
		link -         | GET /v1/download/file?k=invented
		pin alice      | POST /v1/auth/change  | $form | k=$token&p=00000000`,
		"$guess", apitest.Basic(
			"alice",
			"a wrong password",
		), "$unknown", apitest.Basic("a password typed as name", "x"),
		"$form", form, "$token", token)
	_, lines := l.send(
		"PUT",
		"/v1/upload?file=x",
		"abc",
		"Authorization",
		apitest.Basic("alice", password),
		"Repr-Digest",
		"sha-256=:AAAA:",
	)
	expect.Equal(t, "lines of a request that is refused after the login", len(lines), 1)
	for i := range 10 {
		l.send("POST", "/v1/auth/login", "", "Authorization", apitest.Basic("alice", fmt.Sprint("guess ", i)))
	}
	other := apitest.Basic("alice", "another wrong password")
	if status, lines := l.send("POST", "/v1/auth/login", "", "Authorization", other); status != 429 ||
		len(lines) != 2 ||
		lines[1]["msg"] != "login refused" {
		t.Errorf("a login that must wait answers %d and logs %v", status, lines)
	}
	for _, path := range []string{"/v1/download/list", "/v1/download/file", "/v1/nothing"} {
		if status, lines := l.send("GET", path, ""); len(lines) != 1 {
			t.Errorf("%s without a credential answers %d and logs %v", path, status, lines)
		}
	}
}
