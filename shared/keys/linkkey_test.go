package keys_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// keyHolder is a store of the key, with a clock. Each process opens the key by itself.
type keyHolder struct {
	*testing.T
	text  string
	reads int
	fails error
	now   time.Time
	table table.Table
}

func newKeyHolder(t *testing.T) *keyHolder {
	t.Helper()
	db, err := sqlite.Open(t.TempDir()+"/table", sqlite.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { db.Close() })
	return &keyHolder{
		T:     t,
		text:  strings.Repeat("A", 43) + "\n",
		now:   time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC),
		table: db,
	}
}

// process opens the key for a process of its own.
func (h *keyHolder) process() service.Ports {
	h.Helper()
	return h.open(keys.Store{
		Read:  func(context.Context) (string, error) { h.reads++; return h.text, h.fails },
		Write: func(_ context.Context, text string) error { h.text = text; return nil },
	})
}

// without opens it for a process that makes no links.
func (h *keyHolder) without() service.Ports {
	h.Helper()
	return h.open(keys.Store{Read: func(ctx context.Context) (string, error) {
		return keys.PublicVersions(ctx, h.table)
	}})
}

func (h *keyHolder) open(s keys.Store) service.Ports {
	h.Helper()
	s.Memory = time.Minute
	clock := func() time.Time { return h.now }
	k, err := keys.Open(h.Context(), s, clock, slog.New(slog.DiscardHandler))
	expect.NoErr(h, err)
	return service.Ports{Table: h.table, Key: k, Random: rand.Reader, Now: clock}
}

func (h *keyHolder) rotate(p service.Ports) {
	h.Helper()
	h.now = h.now.Add(time.Hour)
	expect.NoErr(h, failure(p.Key.Rotate(h.Context(), p.Table, p.Random, 0)))
}

func (h *keyHolder) revoke(p service.Ports, version int) {
	h.Helper()
	expect.NoErr(h, failure(p.Key.Rotate(h.Context(), p.Table, p.Random, version)))
}

func TestAKeyWithOneVersionHasTheOldTextForm(t *testing.T) {
	t.Parallel()
	p := newKeyHolder(t).process() // its text ends with a line
	want := key(t, "A").File(blob.Files, "alice", 1)
	if got := p.Key.File(blob.Files, "alice", 1); got != want ||
		p.Key.Version() != 0 ||
		p.Key.Of(0).File(blob.Files, "alice", 1) != want {
		t.Errorf("version %d, token %s, want %s", p.Key.Version(), got, want)
	}
}

func TestARotatedKeyMakesNewTokensAndStillKnowsTheOldOnes(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p := h.process()
	file, stop, part := p.Key.File(blob.Files, "alice", 1), p.Key.Stop("ann@example.com"), p.Key.Part("x")
	nonce, err := p.Key.Nonce(rand.Reader)
	pin, change := p.Key.PIN(nonce), p.Key.Change(nonce)
	h.rotate(p)
	for name, k := range map[string]keys.LinkKey{"the same process": p.Key, "a new one": h.process().Key} {
		if address, ok := k.StopAddress(stop); !ok ||
			address != "ann@example.com" ||
			!k.IsPart(part, "x") ||
			k.IsPart(part, "y") ||
			k.PIN(nonce) != pin ||
			k.Change(nonce) != change ||
			err != nil {
			t.Errorf("%s does not know what was made before", name)
		}
		if k.Version() != 2 || k.Of(0).File(blob.Files, "alice", 1) != file || k.File(blob.Files, "alice", 1) == file ||
			k.Stop("ann@example.com") == stop || k.Revoked(0) || k.Revoked(2) {
			t.Errorf("%s makes no new tokens, or makes the old ones anew", name)
		}
		again, _ := k.Nonce(rand.Reader)
		if !strings.HasPrefix(again, "2.") {
			t.Errorf("%s: the nonce is %s", name, again)
		}
	}
}

func TestNothingOfARevokedVersionIsAccepted(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p := h.process()
	stop, part := p.Key.Stop("ann@example.com"), p.Key.Part("x")
	h.revoke(p, 1)
	for name, k := range map[string]keys.LinkKey{"the same process": p.Key, "a new one": h.process().Key} {
		if _, ok := k.StopAddress(stop); ok ||
			k.IsPart(part, "x") ||
			!k.Revoked(0) ||
			k.Revoked(2) ||
			k.Version() != 2 {
			t.Errorf("%s accepts it", name)
		}
	}
	if versions := p.Key.Versions(); !versions[0].Made.IsZero() ||
		!versions[0].Revoked.Equal(h.now) ||
		!versions[1].Made.Equal(h.now) {
		t.Errorf("the versions are %+v", versions)
	}
}

func TestRevokingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p := h.process()
	h.revoke(p, 1)
	text := h.text
	h.now = h.now.Add(time.Hour)
	if h.revoke(p, 1); h.text != text {
		t.Error("the text form has changed")
	}
	for _, version := range []int{-1, 3} {
		if _, err := p.Key.Rotate(t.Context(), p.Table, p.Random, version); err == nil || h.text != text {
			t.Errorf("version %d was revoked: %v", version, err)
		}
	}
}

func TestAProcessWithoutTheKeyKnowsAfterAMinuteWhatIsRevoked(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p, download := h.process(), h.without()
	if h.revoke(p, 1); download.Key.Revoked(0) {
		t.Fatal("it has read the table again too soon")
	}
	h.now = h.now.Add(time.Minute)
	if !download.Key.Revoked(0) || download.Key.Revoked(2) {
		t.Error("after a minute it does not know what is revoked")
	}
	item, err := keys.PublicVersions(t.Context(), h.table)
	for _, v := range p.Key.Versions() {
		if err != nil || v.Key == "" || strings.Contains(item, v.Key) {
			t.Errorf("the table holds a key, or there is none: %v", err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a token was derived without a key")
		}
	}()
	download.Key.File(blob.Files, "alice", 1)
}

func TestAProcessReadsTheKeyAgainOnceAMinuteAndOnlyOnNeed(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	k := h.process().Key
	h.now = h.now.Add(time.Hour)
	for range 120 {
		h.now = h.now.Add(time.Second)
		for range 10 {
			k.File(blob.Files, "alice", 1)
			k.Revoked(0)
		}
	}
	if h.reads != 3 { // at its start, and in two minutes
		t.Errorf("the key was read %d times", h.reads)
	}
}

func TestAFileOfAVersionJustMadeIsAReasonToReadTheKey(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p, other := h.process(), h.process().Key
	h.now = h.now.Add(keyPause)
	expect.NoErr(t, failure(p.Key.Rotate(t.Context(), p.Table, p.Random, 0)))
	before := h.reads
	if other.Of(2).File(blob.Files, "alice", 1) != p.Key.File(blob.Files, "alice", 1) || h.reads != before+1 {
		t.Errorf("after %d reads the token differs", h.reads-before)
	}
	for range 10 {
		other.Of(2).File(blob.Files, "alice", 1)
		other.Of(9).File(blob.Files, "alice", 1) // a version that is lost
	}
	expect.Equal(t, "reads so far", h.reads, before+1)
}

// keyPause is the shortest time between two reads.
const keyPause = time.Second

func TestVersionsForManyYearsFitInAParameter(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	p := h.process()
	for range 24 {
		h.rotate(p)
		h.revoke(p, len(p.Key.Versions())-1)
	}
	if len(h.text) > 4096 {
		t.Errorf("%d versions take %d bytes", len(p.Key.Versions()), len(h.text))
	}
}

func TestAKeyThatCannotBeReadAgainStaysInUse(t *testing.T) {
	t.Parallel()
	h := newKeyHolder(t)
	k := h.process().Key
	want := k.File(blob.Files, "alice", 1)
	h.fails, h.now = errors.New("no answer"), h.now.Add(time.Hour)
	if got := k.File(blob.Files, "alice", 1); got != want || h.reads != 2 {
		t.Errorf("%d reads, token %q", h.reads, got)
	}
}

func TestADamagedKeyIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("B", 43)
	for _, bad := range []string{
		"", "BBBB", secret[1:], secret + "B", secret[1:] + "=", strings.Repeat("+", 43),
		"[]", "[", `[{"key":"` + secret + `"},]`, `[{"key":"` + secret + `B"}]`, `[{"key":"` + secret + `","made":"` + secret + `"}]`, "1 " + secret,
	} {
		if _, err := keys.Parse(bad); err == nil || strings.Contains(err.Error(), "BBBB") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func failure[T any](_ T, err error) error { return err }
