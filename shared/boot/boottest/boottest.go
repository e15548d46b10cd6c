// Package boottest has what the tests of the functions share: the events kept in
// events/, the data that these refer to, and stand-ins for the providers of mail
// and text messages, among them an SMTP server. Only tests and test tools may
// import it. Start reading with Fixture and Service.
package boottest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"ferry/shared/boot/local"
	"ferry/shared/service"
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

// Service returns a service on one machine, on a temporary folder, with the data
// that Fill stores.
func Service(t testing.TB, environment map[string]string) *service.Service {
	t.Helper()
	set, err := service.ReadSettings(func(name string) string { return environment[name] })
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "link.key"), []byte(Key), 0o600))
	data, err := local.Open(dir, local.Options{NoSync: true, Hash: Cheap(), Log: Log(t)})
	check(t, err)
	t.Cleanup(func() { check(t, data.Close()) })
	s, err := Fill(t.Context(), service.New(data.Ports, set))
	check(t, err)
	return s
}

// Log returns a log that goes to the test's output.
func Log(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("preparing a test: %v", err)
	}
}
