// Package expect has what all tests say of results. It imports next to nothing, so that the tests of a
// package compile little besides that package.
package expect

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ferry/shared/fault"
)

// Equal checks that got equals want.
func Equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// Err checks an error as errors.Is does.
func Err(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// Fault checks the kind of a fault.
func Fault(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: got %v, want a fault of the kind %v", what, err, kind)
	}
}

// NoErr ends the test on an error.
func NoErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Alone skips a test of memory or time unless nothing runs beside it. `make test-alone` finds such
// a test by its name.
func Alone(t testing.TB) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestAlone") {
		t.Fatal("the name of a test that measures begins with TestAlone")
	}
	if os.Getenv("FERRY_TEST_ALONE") == "" {
		t.Skip("it measures: make test-alone")
	}
}

// Eventually waits for a condition and reports whether it holds. It gives up after ten minutes.
func Eventually(done func() bool) bool {
	for end := time.Now().Add(10 * time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Golden compares a text with a file in testdata. If UPDATE_GOLDEN is set, it writes
// the file first.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		NoErr(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	NoErr(t, err)
	const end = "\n(its end)" // so that neither is the beginning of the other
	old, now := strings.Split(string(want)+end, "\n"), strings.Split(got+end, "\n")
	for i := range now {
		if now[i] != old[i] {
			t.Errorf(
				"%s:%d differs, see git diff after UPDATE_GOLDEN=1; the text has there\n%.500s",
				path,
				i+1,
				now[i],
			)
			return
		}
	}
}
