package apitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Golden compares with a file of testdata, and writes it where UPDATE_GOLDEN is set.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(old) || line != old[i] {
			t.Errorf("%s:%d differs, see git diff after UPDATE_GOLDEN=1; the first line that does is now\n%s", path, i+1, line)
			return
		}
	}
	if got != string(want) {
		t.Errorf("%s has more lines than the new text", path)
	}
}
