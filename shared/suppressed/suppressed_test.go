package suppressed_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/suppressed"
	"ferry/shared/table/sqlite"
)

func open(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "ferry.db"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func at() time.Time { return time.Date(2026, 8, 7, 14, 30, 0, 0, time.UTC) }

func TestAnAddressIsSuppressedUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	db := open(t)
	if _, ok, err := suppressed.Get(t.Context(), db, "ann@example.com"); err != nil || ok {
		t.Fatalf("at first: %v, %v", ok, err)
	}
	if err := db.Write(t.Context(), suppressed.Add(" Ann@Example.COM", suppressed.Bounced, "550", at())); err != nil {
		t.Fatal(err)
	}
	want := suppressed.Entry{V: 1, To: "ann@example.com", Reason: suppressed.Bounced, Detail: "550", At: at().UnixMilli()}
	for _, address := range []string{"ann@example.com", "ANN@example.com "} {
		if got, ok, err := suppressed.Get(t.Context(), db, address); err != nil || !ok || got != want {
			t.Errorf("%s: %+v, %v, %v", address, got, ok, err)
		}
	}
	for i, want := range []bool{true, false} {
		if was, err := suppressed.Allow(t.Context(), db, "aNN@example.com"); err != nil || was != want {
			t.Errorf("allowing it, time %d: %v, %v", i+1, was, err)
		}
	}
	if _, ok, err := suppressed.Get(t.Context(), db, "ann@example.com"); err != nil || ok {
		t.Errorf("at last: %v, %v", ok, err)
	}
}

func TestTheListHasEachAddressOnce(t *testing.T) {
	t.Parallel()
	db := open(t)
	var want, got []string
	for i := range 30 {
		address := fmt.Sprintf("user%02d@example.com", i)
		want = append(want, address)
		for _, a := range []string{address, strings.ToUpper(address)} {
			if err := db.Write(t.Context(), suppressed.Add(a, suppressed.Stopped, "", at())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for e, err := range suppressed.All(t.Context(), db) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.To)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAKeyHoldsNoAddress(t *testing.T) {
	t.Parallel()
	if key := suppressed.Key("ann@example.com"); strings.Contains(key.String(), "ann") || len(key.SK) != 43 {
		t.Errorf("got %v", key)
	}
}
