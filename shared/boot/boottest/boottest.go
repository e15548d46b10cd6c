// Package boottest has what the tests of the functions share: the events kept in
// events/, the data that these refer to, and stand-ins for the providers of mail
// and text messages, among them an SMTP server. Only tests and test tools may
// import it. Start reading with Fixture and Ports.
package boottest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// Root returns the directory of the module, in which tests run.
func Root(t testing.TB) string {
	t.Helper()
	root, err := os.Getwd()
	check(t, err)
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "shared")); err == nil {
			return root
		}
		if root == filepath.Dir(root) {
			t.Fatal("the test does not run in the module")
		}
	}
}

// Ports returns the ports of one machine, on a temporary folder, with the data
// that Fill stores.
func Ports(t testing.TB, environment map[string]string) *api.Ports {
	t.Helper()
	set, err := api.ReadSettings(func(name string) string { return environment[name] })
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(Key), 0o600))
	data, err := local.Open(dir, set, local.Options{NoSync: true, Hash: Cheap(), Log: Log(t)})
	check(t, err)
	t.Cleanup(func() { check(t, data.Close()) })
	check(t, Fill(t.Context(), data.Ports))
	return data.Ports
}

// Log returns a log that goes to the test's output.
func Log(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("preparing a test: %v", err)
	}
}
