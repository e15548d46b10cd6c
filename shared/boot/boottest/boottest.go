// Package boottest has what the tests of the functions share: the gateway's
// events kept in events/, the data that they speak of, and stand-ins for the
// providers of mail and text messages, an SMTP server among them.
package boottest

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ferry/shared/boot/local"

	"ferry/shared/api"
)

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

// Ports returns the ports of one machine, in a folder of the test, with the
// data of Seed.
func Ports(t testing.TB, environment map[string]string) *api.Ports {
	t.Helper()
	set, err := api.ReadSettings(func(name string) string { return environment[name] })
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(Key), 0o600))
	data, err := local.Open(dir, set, local.Options{NoSync: true, Hash: Cheap(), Log: Log(t)})
	check(t, err)
	t.Cleanup(func() { check(t, data.Close()) })
	Seed(t, data.Ports)
	return data.Ports
}

// Log returns a log that is the test's output.
func Log(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// Seed is Fill for a test.
func Seed(t testing.TB, p *api.Ports) {
	t.Helper()
	check(t, Fill(t.Context(), p))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("preparing the data: %v", err)
	}
}
