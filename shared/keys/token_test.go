package keys_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
	"ferry/shared/links"
)

// key returns a fixed key.
func key(t *testing.T, first string) keys.LinkKey {
	t.Helper()
	k, err := keys.Parse(first + strings.Repeat("A", 42))
	expect.NoErr(t, err)
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
		"PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A": keys.HashToken("token"),
		"yeAHzhXDjhrzVdET5goQ_fbAGnNRnUPeDtLU5jfKXME": k.Recipient(
			blob.Files,
			"alice",
			1,
			"notice",
		),
		"SK2CB4gJYEuXxNSB06vp7fVUT-OQKKvq0dy1mFA6eqk":                     k.Part("id", "1", "sum", "2000003600"),
		"GUx2aONtPgWWmu0Z00yoB33uSrRgp-GUWCvHuG4xl3Jhbm5AZXhhbXBsZS5jb20": k.Stop("ann@example.com"),
		"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHhhbm5AZXhhbXBsZS5jb20": bearer(t, "ann@example.com"),
	} {
		expect.Equal(t, "a token", got, want)
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

func TestNoTokenIsMadeWithoutRandomness(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(errors.New("no entropy"))
	if _, err := keys.RandomToken(broken); err == nil {
		t.Error("a token was made")
	}
	if _, err := keys.RandomToken(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a key was made")
	}
}

func TestStopTokenIsForOneAddress(t *testing.T) {
	t.Parallel()
	k := key(t, "A")
	token := k.Stop(" Ann@Example.com")
	expect.Equal(t, "the token of the same address", k.Stop("ann@example.COM"), token)
	if got, ok := k.StopAddress(token); !ok || got != "ann@example.com" {
		t.Errorf("the token is for %q, %v", got, ok)
	}
	for what, wrong := range map[string]string{
		"another key's":                 key(t, "B").Stop("ann@example.com"),
		"an empty token":                "",
		"not base64url":                 "%" + token,
		"a token with a line break":     token[:10] + "\n" + token[10:],
		"a shortened token":             token[:len(token)-4],
		"a lengthened token":            token + "AAAA",
		"a token of another spelling":   strings.ReplaceAll(token, token[:1], "_"),
		"a file's token":                k.File(blob.Files, "alice", 1),
		"a bearer of the address":       bearer(t, "ann@example.com"),
		"the token of no address":       k.Stop(""),
		"a file's token and an address": k.File(blob.Files, "alice", 1) + token[43:],
	} {
		if got, ok := k.StopAddress(wrong); ok || got != "" {
			t.Errorf("%s is accepted for %q", what, got)
		}
	}
}

func bearer(t *testing.T, name string) string {
	t.Helper()
	token, err := keys.RandomTokenFor(strings.NewReader(strings.Repeat("x", keys.TokenSize)), name)
	expect.NoErr(t, err)
	return token
}

func TestABearerMayBeginLikeTheTokenOfARequest(t *testing.T) {
	t.Parallel()
	random := bytes.NewReader(append([]byte{0x8a, 0x7f, 0xc0}, make([]byte, keys.TokenSize)...))
	bearer, err := keys.RandomTokenFor(random, "0123456789abcdef-ann")
	if err != nil || !strings.HasPrefix(bearer, "in_") || links.IsRequest(bearer) {
		t.Errorf("%s, %v: it is taken for the token of a request", bearer, err)
	}
}
