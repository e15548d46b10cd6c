package users_test

import (
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
	for _, c := range []struct {
		what, password, typed string
		want                  bool
	}{
		{"the same", "a password", "a password", true},
		{"another", "a password", "a passwore", false},
		{"an empty one", "a password", "", false},
		{"a shorter one", "a password", "a passwor", false},
		{"a longer one", "a password", "a password ", false},
		{"the same in decomposed form", "pässwörd", "pa\u0308sswo\u0308rd", true},
		{"the longest", longest, longest, true},
		{"the longest with an extra character", longest, longest + "x", false},
		{"the longest, in decomposed form", strings.Repeat("ṩ", 128), strings.Repeat("s\u0323\u0307", 128), true},
		{"a very long one", longest, strings.Repeat("x", 1<<20), false},
		{"a trailing zero byte", "a password", "a password\x00", false},
	} {
		expect.Equal(t, c.what, verify(t, h, hash(t, h, c.password), c.typed), c.want)
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
	for _, bad := range []string{
		"x", "$", strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "v=19", "v=18", 1), strings.Replace(good, "t=1", "t=0", 1),
		strings.Replace(good, "p=1", "p=0", 1), good[:len(good)-4], good + "$", strings.Replace(good, "m=64", "m=x", 1), good[:strings.LastIndexByte(good, '$')] + "$%",
	} {
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
	steps := []struct {
		what           string
		after          time.Duration
		hash, password string
		ok             bool
		computes       int64
	}{
		{"the first time", 0, stored, "a password", true, 1},
		{"again", 0, stored, "a password", true, 0},
		{"a wrong one", 0, stored, "another one", false, 1},
		{"the wrong one again", 0, stored, "another one", false, 1},
		{"almost a minute later", 60*time.Second - 1, stored, "a password", true, 0},
		{"a minute later", 1, stored, "a password", true, 1},
		{"with another hash of the password", 0, hash(t, h, "a password"), "a password", true, 1},
		{"with the hash of another password", 0, hash(t, h, "another one"), "a password", false, 1},
		{"after the clock was set back", -365 * 24 * time.Hour, stored, "a password", true, 1},
	}
	for _, s := range steps {
		c.advance(s.after)
		before := n.Load()
		if got := verify(t, h, s.hash, s.password); got != s.ok || n.Load()-before != s.computes {
			t.Errorf("%s: %v, %d hashes computed; want %v, %d", s.what, got, n.Load()-before, s.ok, s.computes)
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
	make := func(p users.Params) *users.Hasher {
		h, err := users.NewHasher(p, rand.Reader, time.Now)
		must(t, err)
		return h
	}
	now := make(users.Params{Memory: 128, Time: 2, Threads: 1})
	for what, c := range map[string]struct {
		p    users.Params
		want bool
	}{
		"the same":     {users.Params{Memory: 128, Time: 2, Threads: 1}, false},
		"less memory":  {users.Params{Memory: 64, Time: 2, Threads: 1}, true},
		"less time":    {users.Params{Memory: 128, Time: 1, Threads: 1}, true},
		"more of both": {users.Params{Memory: 256, Time: 3, Threads: 1}, false},
	} {
		old := hash(t, make(c.p), "a password")
		expect.Equal(t, what+": it is outdated", now.Outdated(old), c.want)
		if !verify(t, now, old, "a password") {
			t.Errorf("%s: the password no longer matches", what)
		}
	}
}

// TestHashFormatNeverChanges protects the stored passwords: another format would break them
// all. The value was computed by another program.
func TestHashFormatNeverChanges(t *testing.T) {
	t.Parallel()
	h, err := users.NewHasher(users.DefaultParams(), strings.NewReader(strings.Repeat("s", 32+16)), time.Now)
	must(t, err)
	if got, want := hash(t, h, "pässwörd 10"), "$argon2id$v=19$m=19456,t=2,p=1$c3Nzc3Nzc3Nzc3Nzc3Nzcw$puYEH9k5pO6fu3wJYQ5V/HTfjFvASMEaPqAgHh5wJLA"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

func TestAllowedPasswords(t *testing.T) {
	t.Parallel()
	for what, password := range map[string]string{
		"ten characters":                    "ab cd ef g",
		"ten characters of many bytes":      "пароль мой",
		"128 characters":                    strings.Repeat("abcd", 32),
		"128 characters of four bytes":      strings.Repeat("🎉🎈🎁🎂", 32),
		"128 characters in decomposed form": strings.Repeat("a\u0308o\u0308u\u0308e\u0308", 32),
		"any script":                        "漢字とかなの合言葉です",
		"a phrase":                          "seven bicycles under a lemon",
		"the user's name and more":          "alice in wonderland",
	} {
		if err := users.CheckPassword(password, "alice"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefusedPasswords(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ password, says string }{
		"nothing":                            {"", "10 to 128 characters; this one has 0"},
		"nine characters":                    {"ab cd ef ", "this one has 9"},
		"nine characters of many bytes":      {"пароль мо", "this one has 9"},
		"nine characters in decomposed form": {"a\u0308bcdefghi", "this one has 9"},
		"129 characters":                     {strings.Repeat("abc", 43), "this one has 129"},
		"a line end":                         {"ab cd ef g\n", "control"},
		"not UTF-8":                          {"ab cd ef g\xff", "text"},
		"a common one":                       {"1234567890", "easy to guess"},
		"a common one in upper case":         {"QWERTYUIOP", "easy to guess"},
		"three characters over and over":     {"abcabcabcabcabc", "easy to guess"},
		"the user's name twice":              {"alicealice", "easy to guess"},
		"the user's name and little more":    {"Alice-alice1", "easy to guess"},
	} {
		err := users.CheckPassword(c.password, "alice")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Detail, c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}
