package apitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Golden compares a text with a file in testdata. If UPDATE_GOLDEN is set, it writes
// the file first.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		check(t, "writing the golden file", os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, "reading the golden file", err)
	old, now := strings.Split(string(want), "\n"), append(strings.Split(got, "\n"), "(its end)")
	for i := range now {
		if i >= len(old) && got != string(want) || i < len(old) && now[i] != old[i] {
			t.Errorf("%s:%d differs, see git diff after UPDATE_GOLDEN=1; the text has there\n%s", path, i+1, now[i])
			return
		}
	}
}
