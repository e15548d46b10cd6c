package users_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/users"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.ahead.Load()))
}
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func cheap() users.Params { return users.Params{Memory: 64, Time: 1, Threads: 1} }

// hasher returns a Hasher, its clock, and a count of the hashes it computes.
func hasher(t *testing.T) (*users.Hasher, *clock, *atomic.Int64) {
	t.Helper()
	c, n := &clock{}, &atomic.Int64{}
	h, err := users.NewHasher(cheap(), rand.Reader, c.now)
	must(t, err)
	h.Watch(func(compute func()) {
		n.Add(1)
		compute()
	})
	return h, c, n
}

func hash(t *testing.T, h *users.Hasher, password string) string {
	t.Helper()
	s, err := h.Hash(t.Context(), password)
	must(t, err)
	return s
}

func verify(t *testing.T, h *users.Hasher, hash, password string) bool {
	t.Helper()
	ok, err := h.Verify(t.Context(), hash, password)
	must(t, err)
	return ok
}

func TestHashMatchesOnlyItsPassword(t *testing.T) {
	t.Parallel()
	h, _, _ := hasher(t)
	longest := strings.Repeat("🎉", 128)
	for what, c := range map[string]struct {
		password, typed string
		want            bool
	}{
		"the same":                            {password: "a password", typed: "a password", want: true},
		"another":                             {password: "a password", typed: "a passwore"},
		"an empty one":                        {password: "a password"},
		"the same in decomposed form":         {password: "pässwörd", typed: "pa\u0308sswo\u0308rd", want: true},
		"the longest":                         {password: longest, typed: longest, want: true},
		"the longest with an extra character": {password: longest, typed: longest + "x"},
		"the longest, in decomposed form": {
			password: strings.Repeat("ṩ", 128),
			typed:    strings.Repeat("s\u0323\u0307", 128),
			want:     true,
		},
		"a trailing zero byte": {password: "a password", typed: "a password\x00"},
	} {
		expect.Equal(t, what, verify(t, h, hash(t, h, c.password), c.typed), c.want)
	}
	if a, b := hash(t, h, "a password"), hash(t, h, "a password"); a == b {
		t.Error("two hashes of a password are the same: there is no salt")
	}
	if s := hash(t, h, "a password"); !strings.HasPrefix(s, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Errorf("the hash is %q", s)
	}
}

func TestMalformedHashIsAnError(t *testing.T) {
	t.Parallel()
	h, _, _ := hasher(t)
	good := hash(t, h, "a password")
	all := []string{"x", "$", good[:len(good)-4], good + "$", good[:strings.LastIndexByte(good, '$')] + "$%"}
	for from, to := range map[string]string{
		"argon2id": "argon2i", "v=19": "v=18", "t=1": "t=0", "p=1": "p=0", "m=64": "m=x",
	} {
		all = append(all, strings.Replace(good, from, to, 1))
	}
	for _, bad := range all {
		if ok, err := h.Verify(t.Context(), bad, "a password"); ok || err == nil {
			t.Errorf("%q gives %v, %v", bad, ok, err)
		}
		if h.Outdated(bad) {
			t.Errorf("%q counts as outdated", bad)
		}
	}
}

func TestUnknownUserCostsAHashAndNeverMatches(t *testing.T) {
	t.Parallel()
	h, _, n := hasher(t)
	for _, password := range []string{"a password", "a password", "", strings.Repeat("\x00", 32)} {
		before := n.Load()
		if verify(t, h, "", password) {
			t.Errorf("%q matches", password)
		}
		expect.Equal(t, "hashes so far", n.Load(), before+1)
	}
}

func TestRightPasswordIsRememberedForAMinute(t *testing.T) {
	t.Parallel()
	h, c, n := hasher(t)
	stored := hash(t, h, "a password")
	for _, s := range []struct {
		what           string
		after          time.Duration
		hash, password string
		computes       int64
	}{
		{what: "the first time", computes: 1},
		{what: "again"},
		{what: "a wrong one", password: "another one", computes: 1},
		{what: "the wrong one again", password: "another one", computes: 1},
		{what: "almost a minute later", after: time.Minute - 1},
		{what: "a minute later", after: 1, computes: 1},
		{what: "with another hash of the password", hash: hash(t, h, "a password"), computes: 1},
		{what: "after the clock was set back", after: -365 * 24 * time.Hour, computes: 1},
	} {
		c.advance(s.after)
		before := n.Load()
		ok := verify(t, h, cmp.Or(s.hash, stored), cmp.Or(s.password, "a password"))
		if ok != (s.password == "") || n.Load()-before != s.computes {
			t.Errorf("%s: %v, %d hashes computed, want %d", s.what, ok, n.Load()-before, s.computes)
		}
	}
}

func TestConcurrentHashesAreBoundedByCPUs(t *testing.T) {
	t.Parallel()
	h, err := users.NewHasher(cheap(), rand.Reader, time.Now)
	must(t, err)
	cpus := runtime.GOMAXPROCS(0)
	stored := hash(t, h, "a password")
	var running, most atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.Watch(func(compute func()) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == int64(cpus) {
			once.Do(func() { close(full) })
		}
		if n <= int64(cpus) { // one more would block for ever
			<-release
		}
		compute()
		running.Add(-1)
	})
	var wg sync.WaitGroup
	for range cpus {
		wg.Go(func() { verify(t, h, stored, "a password") })
	}
	<-full
	// All CPUs are busy: another hash waits, and can give up.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 8 * cpus {
		expect.Err(t, "a hash that waits for a CPU", failure(h.Verify(ended, stored, "another")), context.Canceled)
	}
	for range 8 * cpus {
		wg.Go(func() { verify(t, h, stored, "yet another") })
	}
	close(release)
	wg.Wait()
	expect.Equal(t, "hashes at once", most.Load(), int64(cpus))
}

func TestWeakerHashIsOutdated(t *testing.T) {
	t.Parallel()
	of := func(memory, passes uint32) *users.Hasher {
		h, err := users.NewHasher(users.Params{Memory: memory, Time: passes, Threads: 1}, rand.Reader, time.Now)
		must(t, err)
		return h
	}
	now := of(128, 2)
	for old, want := range map[*users.Hasher]bool{
		of(128, 2): false,
		of(64, 2):  true,
		of(128, 1): true,
		of(256, 3): false,
	} {
		stored := hash(t, old, "a password")
		expect.Equal(t, stored+" is outdated", now.Outdated(stored), want)
		if !verify(t, now, stored, "a password") {
			t.Errorf("the password no longer matches %s", stored)
		}
	}
}

// TestHashFormatNeverChanges protects the stored passwords: another format would break them
// all. The value was computed by another program.
func TestHashFormatNeverChanges(t *testing.T) {
	t.Parallel()
	h, err := users.NewHasher(users.DefaultParams(), strings.NewReader(strings.Repeat("s", 32+16)), time.Now)
	must(t, err)
	if got, want := hash(
		t,
		h,
		"pässwörd 10",
	), "$argon2id$v=19$m=19456,t=2,p=1$c3Nzc3Nzc3Nzc3Nzc3Nzcw$puYEH9k5pO6fu3wJYQ5V/HTfjFvASMEaPqAgHh5wJLA"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

func TestAPasswordMustBeLongEnoughAndHardToGuess(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ password, says string }{ // what is wrong, or nothing
		"ten characters of many bytes":       {"пароль мой", ""},
		"128 characters":                     {strings.Repeat("abcd", 32), ""},
		"128 characters of four bytes":       {strings.Repeat("🎉🎈🎁🎂", 32), ""},
		"128 characters in decomposed form":  {strings.Repeat("a\u0308o\u0308u\u0308e\u0308", 32), ""},
		"the user's name and more":           {"alice in wonderland", ""},
		"nothing":                            {"", "10 to 128 characters; this one has 0"},
		"nine characters of many bytes":      {"пароль мо", "this one has 9"},
		"nine characters in decomposed form": {"a\u0308bcdefghi", "this one has 9"},
		"129 characters":                     {strings.Repeat("abc", 43), "this one has 129"},
		"a line end":                         {"ab cd ef g\n", "control"},
		"not UTF-8":                          {"ab cd ef g\xff", "text"},
		"a common one in upper case":         {"QWERTYUIOP", "easy to guess"},
		"three characters over and over":     {"abcabcabcabcabc", "easy to guess"},
		"the user's name twice":              {"alicealice", "easy to guess"},
		"the user's name and little more":    {"Alice-alice1", "easy to guess"},
	} {
		err := users.CheckPassword(c.password, "alice")
		if c.says == "" {
			must(t, err)
		} else if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}
