// Package boottest has what the tests of the functions share: the gateway's
// events kept in events/, and the data that they speak of.
package boottest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/local"
	"ferry/shared/boot/settings"
	"ferry/shared/endpoint"
	"ferry/shared/files"
	"ferry/shared/users"
)

// The passwords of the users in the data.
const (
	Password  = "correct horse battery staple" // alice's
	Temporary = "temporary-Pa55word"           // bob's, who is in first access
)

// Key is the key that the links in events/ are made with.
const Key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// Fixture is a file of events/: an event as Lambda gets it and, beside it, what
// the function must answer. Lambda ignores the latter.
type Fixture struct {
	Name   string
	Event  []byte
	Expect Expect
}

// Expect is an answer. Headers and Body are regular expressions; a header that
// must be missing is "^$". Base64 is a whole body that is no text.
type Expect struct {
	Status  int
	Headers map[string]string
	Body    string
	Base64  string
}

// Root is the directory of the module.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the source's own path is not known")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil { // built with -trimpath
		t.Fatalf("finding the module: %v", err)
	}
	return root
}

// Load reads the fixture of a function.
func Load(t testing.TB, name string) Fixture {
	t.Helper()
	event, err := os.ReadFile(filepath.Join(Root(t), "events", name+".json"))
	if err != nil {
		t.Fatalf("reading a fixture: %v", err)
	}
	var doc struct{ Expect Expect }
	if err := json.Unmarshal(event, &doc); err != nil {
		t.Fatalf("reading events/%s.json: %v", name, err)
	}
	return Fixture{Name: name, Event: event, Expect: doc.Expect}
}

// Decode reads the event.
func (f Fixture) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(f.Event, into); err != nil {
		t.Fatalf("events/%s.json: %v", f.Name, err)
	}
}

// Match fails the test if a body is not the expected one.
func (e Expect) Match(t testing.TB, body []byte) {
	t.Helper()
	if e.Base64 != "" {
		if got := base64.StdEncoding.EncodeToString(body); got != e.Base64 {
			t.Errorf("the body is %s, want %s", got, e.Base64)
		}
		return
	}
	if e.Body == "" {
		t.Error("the fixture expects nothing of the body")
	}
	matches(t, "the body", e.Body, string(body))
}

// MatchHeader fails the test if a header is not the expected one.
func (e Expect) MatchHeader(t testing.TB, header map[string][]string) {
	t.Helper()
	for name, want := range e.Headers {
		matches(t, name, want, strings.Join(header[name], ", "))
	}
}

func matches(t testing.TB, what, want, got string) {
	t.Helper()
	if re, err := regexp.Compile(want); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if !re.MatchString(got) {
		t.Errorf("%s is\n%q, want\n%s", what, got, want)
	}
}

// ones is not random: tokens made with it are those in events/.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

// Ports returns the ports of one machine, in a folder of the test, with the
// data of Seed.
func Ports(t testing.TB, environment map[string]string) *endpoint.Ports {
	t.Helper()
	set, err := settings.Read(func(name string) string { return environment[name] })
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(Key), 0o600))
	data, err := local.Open(dir, set, local.Options{NoSync: true, Hash: cheap(), Log: Log(t)})
	check(t, err)
	t.Cleanup(func() { check(t, data.Close()) })
	Seed(t, data.Ports)
	new(Cloud).Put(data.Ports)
	return data.Ports
}

// Log returns a log that is the test's output.
func Log(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func cheap() auth.Params { return auth.Params{Memory: 64, Time: 1, Threads: 1} }

// Seed stores the data that the events speak of: alice with a bearer, the files
// 1 and 3 and, in the backup area, file 2; bob in first access with a change
// token. It makes the ports hash passwords cheaply.
func Seed(t testing.TB, p *endpoint.Ports) {
	t.Helper()
	var err error
	p.Hasher, err = auth.NewHasher(cheap(), p.Random, p.Now)
	check(t, err)
	ctx := t.Context()
	store := users.NewStore(p.Table, time.Now)
	for _, u := range []users.User{
		{Name: "alice", State: users.Active, Password: hash(t, p, Password), Email: "alice@example.com"},
		{Name: "bob", State: users.FirstAccess, Password: hash(t, p, Temporary), Lang: "it"},
	} {
		check(t, store.Add(ctx, u))
	}
	put(t, p, "Übersicht 1.png", "image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	put(t, p, "old plan.txt", "text/plain", "it is old!\n")
	put(t, p, "plan.txt", "text/plain", "it is new!\n")
	alice, err := store.Get(ctx, "alice")
	check(t, err)
	_, err = p.Files().Delete(ctx, alice, 2)
	check(t, err)

	random := p.Random
	p.Random = ones{}
	_, _, err = p.Auth().Login(ctx, "alice", Password, "203.0.113.7")
	check(t, err)
	bob, err := store.Get(ctx, "bob")
	check(t, err)
	_, err = p.Accounts().First(ctx, bob)
	check(t, err)
	p.Random = random
}

func hash(t testing.TB, p *endpoint.Ports, password string) string {
	t.Helper()
	h, err := p.Hasher.Hash(context.Background(), password)
	check(t, err)
	return h
}

func put(t testing.TB, p *endpoint.Ports, name, kind, content string) {
	t.Helper()
	up, err := p.Files().Begin(t.Context(), "alice", users.User{Name: "alice"}, int64(len(content)), files.Sending{})
	check(t, err)
	check(t, up.Add(t.Context(), files.Part{Name: name, Type: kind, Body: strings.NewReader(content), Size: int64(len(content))}))
	_, err = up.Commit(t.Context())
	check(t, err)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("preparing the data: %v", err)
	}
}
