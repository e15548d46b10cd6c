package local_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/notify/mail"
)

const password = "a password to try"

// frozen is a service with a fixed clock, randomness and key. Two files in testdata
// have everything that it answers and stores.
type frozen struct {
	*apitest.Server
	db   *sql.DB
	now  time.Time
	step string
	// document is the description of the interface with this service's address.
	document string

	reads  map[int]int       // in this step, by their size
	vars   map[string]string // what later steps need from earlier answers
	items  map[string]string
	inside sync.Mutex      // held during a request
	seen   map[string]bool // ids of requests
	secret []string        // what must be neither in the table nor in the log
	http   strings.Builder
	stored strings.Builder
}

// Read returns bytes that depend only on the step, the size and the count, so that the
// order of other reads does not matter.
func (f *frozen) Read(p []byte) (int, error) {
	f.reads[len(p)]++
	sum := sha256.Sum256(fmt.Append(nil, f.step, len(p), f.reads[len(p)]))
	return copy(p, bytes.Repeat(sum[:], 1+len(p)/len(sum))), nil
}

// refusing is an inbox that refuses mail to nobody@ any domain.
type refusing struct{ mail.Sender }

func (r refusing) Send(ctx context.Context, m mail.Message) (string, error) {
	if strings.HasPrefix(m.To, "nobody@") {
		return "", fmt.Errorf("%w: 550 %s is not known, see https://example.com/secret", mail.ErrPermanent, m.To)
	}
	return r.Sender.Send(ctx, m)
}

func freeze(t *testing.T) *frozen {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(strings.Repeat("A", 43)), 0o600))
	s := apitest.Open(t, dir, apitest.Listening, func(s *api.Settings, _ *local.ServiceOptions) { s.PublicURL = "https://ferry.example/v1" })
	document, err := os.ReadFile("../../openapi/openapi.json")
	check(t, err)
	f := &frozen{Server: s, vars: map[string]string{}, reads: map[int]int{}, seen: map[string]bool{}, now: time.Now()}
	f.Base, f.document = s.Root, strings.Replace(string(document), "http://127.0.0.1:8080/v1", "https://ferry.example/v1", 1)
	f.now = f.now.Add(time.Date(2033, 5, 18, 3, 33, 20, 0, time.UTC).Sub(f.now)) // it keeps its monotonic part
	p, now := s.Data.Ports.Clone(), func() time.Time { return f.now }
	s.Data.Ports = p
	hasher, err := auth.NewHasher(apitest.Cheap(), f, now)
	check(t, err)
	p.Now, p.Random, p.Hasher, s.Users = now, f, hasher, auth.NewUsers(p.Table, now)
	origins, _ := envelope.ParseOrigins("https://app.example")
	secrets, _ := notify.ParseWebhookSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Service, err = local.NewService(p, local.ServiceOptions{
		From: "Ferry <ferry@localhost>", ShowInbox: true, Grace: time.Hour, Origins: origins,
		Mail: refusing{inbox.New(p.Table, now).Mail()}, Webhooks: []string{"http://127.0.0.1:1/hook"}, Secrets: secrets,
	})
	check(t, err)
	h := f.Service.Handler()
	s.HTTP.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.inside.Lock()
		defer f.inside.Unlock()
		h.ServeHTTP(w, r)
		file.Links(p).Flush(r.Context())
	})
	if f.db, err = sql.Open("sqlite", filepath.Join(dir, "table.sqlite")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.db.Close() })
	return f
}

// What varies from run to run, and what later steps need from an answer.
var (
	requestID = regexp.MustCompile(`[0-9a-f]{16}`)
	varying   = regexp.MustCompile(`"time":"[^"]+ m=[^"]+"|"upload":"[A-Z2-7]{26}"`)
	found     = map[string]*regexp.Regexp{
		"bearer": regexp.MustCompile(`"(?:bearer|access_token)":"([\w-]+)"`), "session": regexp.MustCompile(`"id":"([\w-]{20,})"`),
		"file": regexp.MustCompile(`"linkURL":"https://ferry.example(/v1/download/[^"]+)`), "pin": regexp.MustCompile(`\\n(\d{8})\\n`),
		"sent": regexp.MustCompile(`\\nhttps://ferry.example(/v1/download/[^"\\]+)`), "change": regexp.MustCompile(`(/v1/auth/change[^"]+)`),
		"stop": regexp.MustCompile(`\\nhttps://ferry.example(/v1/notifications/stop[^"\\]+)`), "part": regexp.MustCompile(`"url":"https://ferry.example(/v1/uploads/[^"]+)`),
		"etag": regexp.MustCompile(`Etag: (".*")`),
	}
)

func (f *frozen) expand(text string) string {
	return os.Expand(text, func(name string) string { return f.vars[name] })
}

// ask sends a request and records the answer. Headers are lines.
func (f *frozen) ask(request, headers, body string) {
	method, path, _ := strings.Cut(f.expand(request), " ")
	var pairs []string
	for line := range strings.FieldsFuncSeq(f.expand(headers), func(r rune) bool { return r == '\n' }) {
		name, value, _ := strings.Cut(line, ": ")
		pairs = append(pairs, name, value)
	}
	resp := f.Request(method, path, strings.NewReader(f.expand(body)), pairs...)
	id := resp.Header.Get("X-Request-Id")
	if id != "" && (f.seen[id] || !requestID.MatchString(id)) {
		f.Errorf("%s: the request's id is %q", f.step, id)
	}
	f.seen[id] = true
	answer := fmt.Sprintln(resp.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Date" {
			answer += name + ": " + strings.Join(resp.Header[name], "\n  ") + "\n"
		}
	}
	text := f.Text(resp)
	if text == f.document {
		text = "(shared/openapi/openapi.json)\n"
	}
	fmt.Fprintf(&f.http, "## %s\n%s\n\n%s\n%s\n", f.step, request, f.plain(answer), f.plain(text))
	f.learn(answer + text)
}

func (f *frozen) plain(text string) string {
	for id := range f.seen {
		if id != "" {
			text = strings.ReplaceAll(text, id, "REQUEST")
		}
	}
	return varying.ReplaceAllString(text, "VARYING")
}

func (f *frozen) learn(text string) {
	for name, re := range found {
		if m := re.FindStringSubmatch(text); m != nil && f.vars[name] != m[1] {
			f.vars[name] = m[1]
			if name != "session" && name != "etag" {
				f.secret = append(f.secret, m[1][strings.LastIndex(m[1], "=")+1:])
			}
		}
	}
}

// look records what has changed in the table.
func (f *frozen) look() {
	f.inside.Lock()
	defer f.inside.Unlock()
	rows, err := f.db.QueryContext(f.Context(), `SELECT pk || ' ' || sk, coalesce(ttl, 0), doc FROM items`)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	items := map[string]string{}
	for rows.Next() {
		var key string
		var ttl int64
		var doc []byte
		var all map[string]any
		if err := rows.Scan(&key, &ttl, &doc); err != nil {
			f.Fatal(err)
		}
		if err := json.Unmarshal(doc, &all); err != nil {
			f.Fatal(err)
		}
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		_ = e.Encode(all) // it was decoded
		items[key] = fmt.Sprintf("ttl=%d %s", ttl, text.String())
	}
	for key, text := range items {
		if !strings.HasPrefix(key, "inbox ") { // the inbox holds what has left the service
			f.hides(key+text, key)
		}
	}
	fmt.Fprintf(&f.stored, "## %s\n", f.step)
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if items[key] != f.items[key] {
			fmt.Fprint(&f.stored, f.plain("+ "+key+" "+items[key]))
			f.learn(items[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.items)) {
		if items[key] == "" {
			fmt.Fprintln(&f.stored, "-", f.plain(key))
		}
	}
	f.items = items
}

// TestAnswersAndStoredItemsDoNotChange uses the whole service. Set UPDATE_GOLDEN=1 to
// accept changes.
func TestAnswersAndStoredItemsDoNotChange(t *testing.T) {
	t.Parallel()
	f := freeze(t)
	const (
		bearer = "Authorization: Bearer $bearer"
		typed  = "\nContent-Type: application/json"
		form   = "Content-Type: application/x-www-form-urlencoded"
		parts  = bearer + "\nContent-Type: multipart/form-data; boundary=b"
		page   = "Accept: text/html"
	)
	basic := func(name string) string { return "Authorization: " + apitest.Basic(name, password) }
	wrong := "Authorization: " + apitest.Basic("alice", "the-wrong-one")
	part := func(name string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\nhello " + name + "\r\n"
	}
	day := 24 * time.Hour
	f.secret = []string{
		strings.Repeat("A", 43), "password of mine", "password+of+mine", "another password", "another+password", "the-wrong-one", "%zz",
		"u=Alice", strings.TrimPrefix(basic("alice"), "Authorization: Basic "), password, strings.ReplaceAll(password, " ", "+"),
	}
	for _, s := range []struct {
		what          string
		do            any // a request, a length of time that passes, or something done
		headers, body string
	}{
		{"users are added", func() {
			f.AddUser("alice", password, func(u *auth.User) { u.Quota, u.Phone = 1000, "+393351234567" })
			f.AddUser("bob", password, func(u *auth.User) { u.Lang, u.KeepDays, u.BackupDays = "fr", 5, 6 })
			f.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
			f.AddUser("gone", password)
			if err := f.Users.Disable(f.Context(), "gone"); err != nil {
				f.Fatal(err)
			}
		}, "", ""},
		{"a page of welcome", "GET /", "", ""},
		{"health", "GET /v1/health", "", ""},
		{"health, head alone", "HEAD /v1/health", "", ""},
		{"the description", "GET /v1/openapi.json", "", ""},
		{"the description, head alone", "HEAD /v1/openapi.json", "", ""},
		{"no such path", "GET /v1/nothing", "", ""},
		{"no such path, head alone", "HEAD /v1/nothing", "", ""},
		{"no such version", "GET /v2/upload", "", ""},
		{"another method", "PATCH /v1/upload", "", ""},
		{"a preflight", "OPTIONS /v1/upload", "Origin: https://app.example\nAccess-Control-Request-Method: POST", ""},
		{"a preflight of another origin", "OPTIONS /v1/upload", "Origin: https://evil.example\nAccess-Control-Request-Method: POST", ""},
		{"a page of a known origin", "GET /v1/health", "Origin: https://app.example", ""},

		{"a login", "POST /v1/auth/login", basic("Alice"), ""},
		{"a login without credentials", "POST /v1/auth/login", "", ""},
		{"a login with a wrong password", "POST /v1/auth/login", wrong, ""},
		{"a login of a disabled user", "POST /v1/auth/login", basic("gone"), ""},
		{"a login in first access", "POST /v1/auth/login", basic("new"), ""},
		{"a token", "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=a+password+to+try"},
		{"a token for a wrong password", "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=the-wrong-one"},
		{"a token for a broken form", "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=the-wrong-one%zz"},
		{"a token of another grant", "POST /v1/oauth2/token", form, "grant_type=refresh_token"},
		{"a token for no form", "POST /v1/oauth2/token", typed, "{}"},

		{"trouble of the service's own", func() {
			f.Calls.Before("table.GetMany", func() error { return errors.New("the text of trouble") })
			f.ask("POST /v1/auth/login", basic("alice"), "")
			f.ask("POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=x")
			f.Calls.Before("table.GetMany", nil)
			if n := len(regexp.MustCompile(`msg=request id=[0-9a-f]{16} .*the text of trouble`).FindAllString(f.Log.String(), -1)); n != 2 {
				f.Errorf("the log has the text with the request's id %d times", n)
			}
		}, "", ""},
		{"what needs a login", func() {
			for _, request := range []string{
				"POST /v1/auth/first", "POST /v1/upload?file=x", "GET /v1/download/list", "GET /v1/download/list/backup", "GET /v1/files/1",
				"DELETE /v1/files/1", "POST /v1/files/1/restore", "POST /v1/uploads", "GET /v1/uploads", "GET /v1/uploads/x",
				"DELETE /v1/uploads/x", "POST /v1/uploads/x/parts", "POST /v1/uploads/x/complete",
			} {
				f.ask(request, "", "")
			}
		}, "", ""},
		{"an empty list", "GET /v1/download/list", bearer, ""},
		{"a list with a wrong bearer", "GET /v1/download/list", "Authorization: Bearer x", ""},
		{"a list with a wrong limit", "GET /v1/download/list?limit=x", bearer, ""},
		{"an upload", "POST /v1/upload?file=%C3%A9+%26+%22x%22.txt", bearer + "\nContent-Type: text/plain", "hello"},
		{"an upload by PUT with SHA-256", "PUT /v1/upload?file=digest&lang=it", basic("alice") + "\nRepr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:", "hello"},
		{"an upload with another SHA-256", "PUT /v1/upload?file=digest", bearer + "\nRepr-Digest: sha-256=:AAAAul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:", "hello"},
		{"an upload of a form", "POST /v1/upload", parts, part("a.txt") + part("b.txt") + "--b--\r\n"},
		{"an upload of a form without a file", "POST /v1/upload", parts, "--b--\r\n"},
		{"an upload of half a form", "POST /v1/upload", parts, part("a.txt")},
		{"an upload without a name", "POST /v1/upload", bearer, "hello"},
		{"an upload to another who is to be told", "POST /v1/upload?file=to+bob&d=bob&m=ann@example.com&c=%2B393351234568&i=It+is+%3Chere%3E&notify=1&lang=de", bearer, "for bob"},
		{"an upload to a user who is not there", "POST /v1/upload?file=x&d=nobody", bearer, "x"},
		{"an upload with a wrong number", "POST /v1/upload?file=x&c=12", bearer, "x"},
		{"an upload with a wrong address", "POST /v1/upload?file=x&m=nowhere", bearer, "x"},
		{"an upload that is too large", "POST /v1/upload?file=x", bearer, strings.Repeat("x", 1001)},
		{"an upload with a key", "POST /v1/upload?file=key", bearer + "\nIdempotency-Key: one", "once"},
		{"the same with the same key", "POST /v1/upload?file=key", bearer + "\nIdempotency-Key: one", "once"},
		{"another with the same key", "POST /v1/upload?file=other", bearer + "\nIdempotency-Key: one", "once"},
		{"an upload to somebody who is not there", "POST /v1/upload?file=lost&m=nobody@example.com", bearer, "lost"},
		{"a list of two", "GET /v1/download/list?limit=2", bearer, ""},
		{"the next two", "GET /v1/download/list?limit=2&after=5", basic("alice"), ""},
		{"a list, head alone", "HEAD /v1/download/list", bearer, ""},
		{"a file's record", "GET /v1/files/1", bearer, ""},
		{"a record, head alone", "HEAD /v1/files/1", bearer, ""},
		{"a record of a file for another", "GET /v1/files/1?d=bob", bearer, ""},
		{"no such record", "GET /v1/files/77", bearer, ""},
		{"a record of another area", "GET /v1/files/1?area=x", bearer, ""},
		{"messages are sent", func() { f.Deliver() }, "", ""},
		{"the inbox", "GET /inbox", "", ""},
		{"the inbox for programs", "GET /inbox", "Accept: application/json", ""},

		{"a file by its recipient's link", "GET $sent", "", ""},
		{"the receipt is sent", func() { f.Deliver() }, "", ""},
		{"a record of a file of which others were told", "GET /v1/files/1?d=bob", bearer, ""},
		{"a list to take a link from", "GET /v1/download/list?limit=1&after=2", bearer, ""},
		{"a file", "GET $file", "", ""},
		{"a file, head alone", "HEAD $file", "", ""},
		{"a file's page", "GET $file", page, ""},
		{"a file's envelope", "GET $file", "Accept: application/json", ""},
		{"a file's preview", "GET $file", "User-Agent: WhatsApp/2.23.20.0", ""},
		{"a part of a file", "GET $file", "Range: bytes=1-2", ""},
		{"no part of a file", "GET $file", "Range: bytes=9-", ""},
		{"a file that is known", "GET $file", "If-None-Match: $etag", ""},
		{"a download without a token", "GET /v1/download/file", "", ""},
		{"a download with a wrong one", "GET /v1/download/file?k=%25zz-the-wrong-one", "", ""},
		{"a download with a broken one", "GET /v1/download/file?k=%zz-the-wrong-one", "", ""},
		{"a page of a wrong one", "GET /v1/download/file?k=x&lang=es", page, ""},

		{"a deletion", "DELETE /v1/files/1", bearer, ""},
		{"a file that was deleted", "GET /v1/download/file?k=c2AEoVUIGbNyHZFZQzvtu9I6DPjOsZkhuyS9MI5U3jg", "", ""},
		{"a deletion of what is not there", "DELETE /v1/files/77", bearer, ""},
		{"a deletion of no number", "DELETE /v1/files/x", bearer, ""},
		{"the backup list", "GET /v1/download/list/backup", bearer, ""},
		{"the backup list, head alone", "HEAD /v1/download/list/backup", bearer, ""},
		{"a file of the backup area", "GET $file", "", ""},
		{"a download there with a wrong token", "GET /v1/download/file/backup?z=x", "", ""},
		{"a download there with a wrong token, head alone", "HEAD /v1/download/file/backup?z=x", "", ""},
		{"a download there without one", "HEAD /v1/download/file/backup", "", ""},
		{"a record of the backup area", "GET /v1/files/1?area=backup", bearer, ""},
		{"a restoration", "POST /v1/files/1/restore", bearer, ""},
		{"a backup link after the restoration", "GET /v1/download/file/backup?z=uqEMxGVp3c8gFUAmT8zZ2T_iacE9ZaP35y5xfdWXsr0", "", ""},
		{"a file that was restored", "GET /v1/download/file?k=c2AEoVUIGbNyHZFZQzvtu9I6DPjOsZkhuyS9MI5U3jg", "", ""},
		{"a restoration of what is not there", "POST /v1/files/1/restore", bearer, ""},

		{"a session", "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: two", `{"name":"s.bin","length":5,"type":"text/plain","c":"+393351234569","notify":true}`},
		{"a session of a negative length", "POST /v1/uploads", bearer + typed, `{"name":"s.bin","length":-1}`},
		{"sessions", "GET /v1/uploads", bearer, ""},
		{"a session is shown", "GET /v1/uploads/$session", bearer, ""},
		{"no such session", "GET /v1/uploads/x", bearer, ""},
		{"a completion too early", "POST /v1/uploads/$session/complete", bearer, ""},
		{"where a part goes", "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1]}`},
		{"where no part goes", "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[2]}`},
		{"a part of another length", "PUT $part", "", "part"},
		{"a part", "PUT $part", "", "parts"},
		{"a part with another signature", "PUT ${part}x", "", "parts"},
		{"a session with its part", "GET /v1/uploads/$session", bearer, ""},
		{"a completion", "POST /v1/uploads/$session/complete", bearer, ""},
		{"a completion once more", "POST /v1/uploads/$session/complete", bearer, ""},
		{"a session that is done cannot be ended", "DELETE /v1/uploads/$session", bearer, ""},
		{"another session", "POST /v1/uploads", bearer + typed, `{"name":"s.bin","length":5,"d":"bob"}`},
		{"it is ended", "DELETE /v1/uploads/$session", bearer, ""},

		{"stopping mails", "GET $stop", "", ""},
		{"a page for stopping mails", "GET $stop", page, ""},
		{"mails that end", "POST $stop", "", ""},
		{"mails that come again", "POST $stop", form, "undo=1"},
		{"a page of mails that end", "POST $stop", page, ""},
		{"a wrong token for mails", "POST /v1/notifications/stop?t=x", "", ""},
		{"an upload to somebody who wants no mails", "POST /v1/upload?file=x&m=alice@example.com", bearer, "x"},
		{"what is due is sent", func() { f.Deliver() }, "", ""},

		{"first access", "POST /v1/auth/first", basic("new"), ""},
		{"a look at the change link", "POST $change", "", ""},
		{"a password that is too short", "POST $change&z=short", "", ""},
		{"a first password", "POST $change", form, "z=a+password+of+mine"},
		{"a change link that was used", "POST $change&z=a+password+of+mine", "", ""},
		{"first access of a user beyond it", "POST /v1/auth/first", basic("alice"), ""},
		{"forget without a user", "GET /v1/auth/forget", "", ""},
		{"forget of nobody", "GET /v1/auth/forget?u=nobody", "", ""},
		{"forget of a disabled user", "GET /v1/auth/forget?u=gone", "", ""},
		{"forget", "GET /v1/auth/forget?u=Alice", "", ""},
		{"the PIN is sent", func() { f.Deliver() }, "", ""},
		{"a change without the PIN", "POST $change&z=another+password", "", ""},
		{"a change with a wrong PIN", "POST $change&p=00000000&z=another+password", "", ""},
		{"a change", "POST $change&p=$pin&z=another+password", "", ""},
		{"a bearer of before the change", "GET /v1/download/list", bearer, ""},
		{"a login with the new password", "POST /v1/auth/login", "Authorization: " + apitest.Basic("alice", "another password"), ""},
		{"forget, too often", func() {
			for range 3 {
				f.ask("GET /v1/auth/forget?u=alice", "", "")
			}
		}, "", ""},
		{"logins with a wrong password, too many", func() {
			for i := range 7 {
				f.ask("POST /v1/auth/login", "Authorization: "+apitest.Basic("alice", fmt.Sprint(i)), "")
			}
		}, "", ""},
		{"bob's login", "POST /v1/auth/login", basic("bob"), ""},
		{"bob's list", "GET /v1/download/list", bearer, ""},
		{"a bearer is revoked", "POST /v1/oauth2/revoke", form, "token=$bearer"},
		{"no bearer is revoked", "POST /v1/oauth2/revoke", form, ""},
		{"a bearer that was revoked", "GET /v1/download/list", bearer, ""},

		{"events go to their webhook", func() {
			f.checkEvents()
			if err := f.Service.Sender.Spread(f.Context()); err != nil {
				f.Error(err)
			}
		}, "", ""},
		{"files expire", 31 * day, "", ""},
		{"a file that has expired", "GET /v1/download/file?k=c2AEoVUIGbNyHZFZQzvtu9I6DPjOsZkhuyS9MI5U3jg", "", ""},
		{"a sweep", f.sweep, "", ""},
		{"files expire in the backup area", 91 * day, "", ""},
		{"another sweep", f.sweep, "", ""},
		{"a sweep of nothing", f.sweep, "", ""},
	} {
		f.step, f.reads, f.now = s.what, map[int]int{}, f.now.Add(time.Second)
		switch do := s.do.(type) {
		case string:
			f.ask(do, s.headers, s.body)
		case time.Duration:
			f.now = f.now.Add(do)
		case func():
			do()
		}
		f.look()
	}
	f.checkEvents()
	f.secret = append(f.secret, "It is", "It+is")
	f.hides(f.Log.String(), "the log")
	apitest.Golden(t, "http.txt", f.http.String())
	apitest.Golden(t, "table.txt", f.stored.String())
}

func (f *frozen) sweep() {
	r, err := f.Service.Sweep(f.Context())
	fmt.Fprintf(&f.http, "## %s\nseen %d, moved %d, purged %d, orphans %d, failed %d, %v\n\n", f.step, r.Seen, r.Moved, r.Purged, r.Orphans, r.Failed, err)
}

func (f *frozen) hides(text, where string) {
	f.Helper()
	for _, secret := range f.secret {
		if strings.Contains(text, secret) {
			f.Errorf("%s: the secret %q is in %s", f.step, secret, where)
		}
	}
}

// checkEvents checks events against their description, and for secrets.
func (f *frozen) checkEvents() {
	f.Helper()
	for _, e := range f.Events() {
		for _, secret := range []string{"ann@", "nobody@", "3351234568", "&k=", "&z=", "/download/", "example.com/secret"} {
			if strings.Contains(e.Text, secret) {
				f.Errorf("%s is in %s", secret, e.Text)
			}
		}
	}
}
