package apitest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
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

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/notify/mail"
	"ferry/shared/openapi"
	"ferry/shared/users"
)

// frozen is a walk with a fixed clock, randomness and key. Two files in testdata have
// everything that is answered and stored.
type frozen struct {
	*walk
	db     *sql.DB
	now    time.Time
	reads  map[int]int // in this step, by their size
	items  map[string]string
	inside sync.Mutex      // held during a request
	ids    map[string]bool // of requests
	secret []string        // what must be neither in the table nor in the log
	http   strings.Builder
	stored strings.Builder
}

// Read returns bytes that depend only on the step, the size and the count, so that the
// order of other reads does not matter.
func (f *frozen) Read(p []byte) (int, error) {
	f.reads[len(p)]++
	sum := sha256.Sum256(fmt.Append(nil, f.step.name, len(p), f.reads[len(p)]))
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

func freeze(t *testing.T, through func(*frozen, http.Handler) http.Handler) *frozen {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(strings.Repeat("A", 43)), 0o600))
	s := apitest.Open(t, dir, apitest.Listening, public)
	f := &frozen{walk: begin(s), ids: map[string]bool{}, reads: map[int]int{}, now: time.Now()}
	f.now = f.now.Add(time.Date(2033, 5, 18, 3, 33, 20, 0, time.UTC).Sub(f.now)) // it keeps its monotonic part
	f.answered, f.learned, f.sweep = f.record, f.learnt, f.recordSweep
	f.pass = func(d time.Duration) { f.now = f.now.Add(d) }
	f.spread = func() {
		f.checkEvents()
		check(f, f.Service.Sender.Spread(f.Context()))
	}
	f.secret = []string{
		strings.Repeat(
			"A",
			43,
		), "ferry_", "password of mine", "password+of+mine", "another password", "another+password", "the-wrong-one", "%zz",
		"u=Alice", strings.TrimPrefix(
			apitest.Basic("alice", password),
			"Basic ",
		), password, strings.ReplaceAll(password, " ", "+"),
	}
	p, now := s.Data.Ports, func() time.Time { return f.now }
	hasher, err := users.NewHasher(apitest.Cheap(), f, now)
	check(t, err)
	p.Now, p.Random, p.Hasher, s.Users = now, f, hasher, &users.Service{Table: p.Table, Now: now}
	origins, _ := envelope.ParseOrigins("https://app.example")
	secrets, _ := notify.ParseWebhookSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	s.Data.Ports = p
	f.Service, err = local.NewService(p, s.Service.Settings, local.ServiceOptions{
		From: "Ferry <ferry@localhost>", ShowInbox: true, Grace: time.Hour, Origins: origins,
		Couriers: map[files.Channel]notify.Courier{files.Mail: notify.ByMail(refusing{inbox.New(p.Table, now).Mail()})},
		Webhooks: []string{"http://127.0.0.1:1/hook"}, Secrets: secrets,
	})
	check(t, err)
	h := through(f, f.Service.Handler())
	s.HTTP.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.inside.Lock()
		defer f.inside.Unlock()
		h.ServeHTTP(w, r)
		f.Service.Links().Flush(r.Context())
	})
	f.db, err = sql.Open("sqlite", filepath.Join(dir, "table.sqlite"))
	check(t, err)
	t.Cleanup(func() { f.db.Close() })
	return f
}

// What varies from run to run.
var (
	requestID = regexp.MustCompile(`[0-9a-f]{16}`)
	content   = regexp.MustCompile(`Content-Type: (text/(html|css)|image/svg)`)
	varying   = regexp.MustCompile(`"time":"[^"]+ m=[^"]+"|"upload":"[A-Z2-7]{26}"|(outbox#[0-7] )?\bm-[\w-]{22}`)
)

// record records an answer. Tokens in requests are written out where they never change.
func (f *frozen) record(request, answer, text string) {
	id := regexp.MustCompile(`X-Request-Id: (.*)`).FindStringSubmatch(answer)
	if id != nil && (f.ids[id[1]] || !requestID.MatchString(id[1])) {
		f.Errorf("%s: the request's id is %q", f.step.name, id[1])
	}
	if id != nil {
		f.ids[id[1]] = true
	}
	if text == openapi.For("https://ferry.example/v1") {
		text = "(shared/openapi/openapi.json)\n"
	}
	if content.MatchString(answer) { // shared/web tests pages
		answer, text = regexp.MustCompile("Content-Length: .*\n").
			ReplaceAllString(answer, ""), "(a page, or a file of pages)\n"
	}
	request = strings.NewReplacer("$k", f.vars["k"], "$z", f.vars["z"]).Replace(request)
	fmt.Fprintf(&f.http, "## %s\n%s\n\n%s\n%s\n", f.step.name, request, f.plain(answer), f.plain(text))
}

func (f *frozen) plain(text string) string {
	for id := range f.ids {
		text = strings.ReplaceAll(text, id, "REQUEST")
	}
	return varying.ReplaceAllString(text, "VARYING")
}

// learnt keeps what must not be stored.
func (f *frozen) learnt(name, value string) {
	if !slices.Contains([]string{"session", "etag", "id", "tokenID", "request"}, name) {
		f.secret = append(f.secret, value[strings.LastIndex(value, "=")+1:])
	}
}

// look records what has changed in the table.
func (f *frozen) look() {
	f.inside.Lock()
	defer f.inside.Unlock()
	rows, err := f.db.QueryContext(f.Context(), `SELECT pk || ' ' || sk, coalesce(ttl, 0), doc FROM items`)
	check(f, err)
	defer rows.Close()
	items := map[string]string{}
	for rows.Next() {
		var key string
		var ttl int64
		var doc []byte
		check(f, rows.Scan(&key, &ttl, &doc))
		items[key] = fmt.Sprintf("ttl=%d %s", ttl, plain(f, doc))
	}
	for key, text := range items {
		if !strings.HasPrefix(key, "inbox ") { // the inbox holds what has left the service
			f.hides(key+text, key)
		}
	}
	fmt.Fprintf(&f.stored, "## %s\n", f.step.name)
	var changed, gone []string
	for key, text := range items {
		if text != f.items[key] {
			changed = append(changed, f.plain("+ "+key+" "+text))
		}
	}
	for key := range f.items {
		if items[key] == "" {
			gone = append(gone, f.plain("- "+key+"\n"))
		}
	}
	slices.Sort(changed) // as the file shows them: what varies is part of a key
	slices.Sort(gone)
	f.stored.WriteString(strings.Join(append(changed, gone...), ""))
	f.items = items
}

// TestAnswersAndStoredItemsDoNotChange sends the journey's requests to the one process, and to
// the functions, which must answer and store the same. Set UPDATE_GOLDEN=1 to accept changes.
func TestAnswersAndStoredItemsDoNotChange(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(*frozen, http.Handler) http.Handler{
		"one process": func(_ *frozen, whole http.Handler) http.Handler { return whole },
		"functions":   (*frozen).functions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			freeze(t, through).compare(t)
		})
	}
}

func (f *frozen) compare(t *testing.T) {
	f.run(func(take func()) {
		f.reads, f.now = map[int]int{}, f.now.Add(time.Second)
		take()
		f.look()
	})
	f.checkEvents()
	f.secret = append(f.secret, "It is", "It+is")
	f.hides(f.Log.String(), "the log")
	expect.Golden(t, "http.txt", f.http.String())
	expect.Golden(t, "table.txt", f.stored.String())
}

func (f *frozen) recordSweep() {
	r, err := f.Service.Sweep(f.Context())
	fmt.Fprintf(&f.http, "## %s\nseen %d, moved %d, purged %d, orphans %d, failed %d, %v\n\n",
		f.step.name, r.Seen, r.Moved, r.Purged, r.Orphans, r.Failed, err)
}

func (f *frozen) hides(text, where string) {
	f.Helper()
	for _, secret := range f.secret {
		if strings.Contains(text, secret) {
			f.Errorf("%s: the secret %q is in %s", f.step.name, secret, where)
		}
	}
}

// checkEvents checks events against their description, and for secrets.
func (f *frozen) checkEvents() {
	f.Helper()
	for _, e := range f.Events() {
		for _, secret := range []string{
			"ann@", "nobody@", "3351234568", "&k=", "&z=", "/download/", "example.com/secret",
		} {
			if strings.Contains(e.Text, secret) {
				f.Errorf("%s is in %s", secret, e.Text)
			}
		}
	}
}
