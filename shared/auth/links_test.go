package auth_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"ferry/shared/auth"
	"ferry/shared/blob"
)

// key returns a fixed key.
func key(t *testing.T, first string) auth.LinkKey {
	t.Helper()
	k, err := auth.ParseLinkKey(first + strings.Repeat("A", 42))
	must(t, err)
	return k
}

// TestTokensNeverChange protects the links that were already sent: another derivation
// would break them all. The values were computed by another program.
func TestTokensNeverChange(t *testing.T) {
	t.Parallel()
	k := key(t, "A")
	for want, got := range map[string]string{
		"c2AEoVUIGbNyHZFZQzvtu9I6DPjOsZkhuyS9MI5U3jg": k.File(blob.Files, "alice", 1),
		"uqEMxGVp3c8gFUAmT8zZ2T_iacE9ZaP35y5xfdWXsr0": k.File(blob.Backup, "alice", 1),
		"19268625": k.PIN("nonce"),
		"PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A":                     auth.HashToken("token"),
		"yeAHzhXDjhrzVdET5goQ_fbAGnNRnUPeDtLU5jfKXME":                     k.Recipient(blob.Files, "alice", 1, "notice"),
		"SK2CB4gJYEuXxNSB06vp7fVUT-OQKKvq0dy1mFA6eqk":                     k.Part("id", "1", "sum", "2000003600"),
		"GUx2aONtPgWWmu0Z00yoB33uSrRgp-GUWCvHuG4xl3Jhbm5AZXhhbXBsZS5jb20": k.Stop("ann@example.com"),
		"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHhhbm5AZXhhbXBsZS5jb20": bearer(t, "ann@example.com"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTokensOfDifferentFilesDiffer(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	seen := map[string]string{}
	for what, token := range map[string]string{
		"a file": key(t, "A").File(blob.Files, "alice", 1), "another id": key(t, "A").File(blob.Files, "alice", 11), "another area": key(t, "A").File(blob.Backup, "alice", 1),
		"another owner": key(t, "A").File(blob.Files, "alice1", 1), "another key": key(t, "B").File(blob.Files, "alice", 1),
	} {
		if other, ok := seen[token]; ok || !shape.MatchString(token) {
			t.Errorf("%s has the token %q, like %s", what, token, other)
		}
		seen[token] = what
	}
}

func TestPINHasEightDigits(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 200 {
		pin := key(t, "A").PIN(strings.Repeat("x", i))
		if len(pin) != 8 || strings.Trim(pin, "0123456789") != "" {
			t.Errorf("a PIN is %q", pin)
		}
		seen[pin] = true
	}
	if len(seen) < 199 {
		t.Errorf("there are only %d different PINs of 200", len(seen))
	}
}

func TestLinkKeyIsReadAsWritten(t *testing.T) {
	t.Parallel()
	text, err := auth.RandomToken(rand.Reader)
	must(t, err)
	a, err := auth.ParseLinkKey(text)
	b, err2 := auth.ParseLinkKey(" " + text + "\n")
	if err != nil || err2 != nil || a.PIN("x") != b.PIN("x") {
		t.Errorf("reading the key: %v, %v", err, err2)
	}
	for _, bad := range []string{"", "AAAA", strings.Repeat("A", 42), strings.Repeat("A", 44), strings.Repeat("A", 42) + "=", strings.Repeat("+", 43)} {
		if _, err := auth.ParseLinkKey(bad); err == nil || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMissingKeyDerivesNothing(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a token was derived from no key")
		}
	}()
	auth.LinkKey{}.File(blob.Files, "alice", 1)
}

func TestRandomTokenCarriesItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"alice", "a.b-c_d@example.com+x", "é"} {
		token, err := auth.RandomTokenFor(rand.Reader, name)
		must(t, err)
		if got, ok := auth.TokenName(token); !ok || got != name {
			t.Errorf("the token of %q carries %q, %v", name, got, ok)
		}
	}
	plain, err := auth.RandomToken(rand.Reader)
	if err != nil || len(plain) != 43 {
		t.Errorf("a token is %q, %v", plain, err)
	}
	for _, none := range []string{plain, "", "x", "%%%", strings.Repeat("A", 20)} {
		if name, ok := auth.TokenName(none); ok {
			t.Errorf("%q carries %q", none, name)
		}
	}
}

func TestNoTokenIsMadeWithoutRandomness(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(errors.New("no entropy"))
	if _, err := auth.RandomToken(broken); err == nil {
		t.Error("a token was made")
	}
	if _, err := auth.RandomToken(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a key was made")
	}
}

func TestLinkFormats(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"http://h/v1/download/file?lang=it&k=T":        auth.DownloadLink("http://h/v1", "it", blob.Files) + "T",
		"http://h/v1/download/file/backup?lang=it&z=T": auth.DownloadLink("http://h/v1", "it", blob.Backup) + "T",
		"http://h/v1/auth/change?lang=en&k=T":          auth.ChangeLink("http://h/v1", "en", "T"),
		"http://h/v1/notifications/stop?lang=it&t=T":   auth.StopLink("http://h/v1", "it", "T"),
	} {
		if got != want {
			t.Errorf("the link is %q, want %q", got, want)
		}
	}
}
