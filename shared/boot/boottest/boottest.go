// Package boottest has what the tests of the functions share: the gateway's
// events kept in events/, and the data that they speak of. Only tests may import it. Start
// reading with Ports.
package boottest

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/fixture"
	"ferry/shared/boot/local"
)

// What the data are; see package fixture.
const (
	Password  = fixture.Password
	Temporary = fixture.Temporary
	Key       = fixture.Key
)

// Fixture is one of events/.
type Fixture struct {
	Name   string
	Event  []byte
	Expect Expect
}

// Expect is the answer that a fixture expects.
type Expect struct{ fixture.Expect }

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
	f, err := fixture.Load(Root(t), name)
	check(t, err)
	return Fixture{Name: name, Event: f.Event, Expect: Expect{f.Expect}}
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
	if err := e.CheckBody(body); err != nil {
		t.Error(err)
	}
}

// MatchHeader fails the test if a header is not the expected one.
func (e Expect) MatchHeader(t testing.TB, header map[string][]string) {
	t.Helper()
	if err := e.CheckHeader(header); err != nil {
		t.Error(err)
	}
}

// Ports returns the ports of one machine, in a folder of the test, with the
// data of Seed.
func Ports(t testing.TB, environment map[string]string) *api.Ports {
	t.Helper()
	set, err := api.ReadSettings(func(name string) string { return environment[name] })
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(Key), 0o600))
	data, err := local.Open(dir, set, local.Options{NoSync: true, Hash: fixture.Cheap(), Log: Log(t)})
	check(t, err)
	t.Cleanup(func() { check(t, data.Close()) })
	Seed(t, data.Ports)
	return data.Ports
}

// Log returns a log that is the test's output.
func Log(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// Seed stores the data that the events speak of; see package fixture.
func Seed(t testing.TB, p *api.Ports) {
	t.Helper()
	check(t, fixture.Seed(t.Context(), p))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("preparing the data: %v", err)
	}
}
