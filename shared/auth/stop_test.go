package auth_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/blob"
)

func TestStopTokenIsForOneAddress(t *testing.T) {
	t.Parallel()
	k := key(t, "A")
	token := k.Stop(" Ann@Example.com")
	if other := k.Stop("ann@example.COM"); other != token {
		t.Errorf("the tokens of one address are %q and %q", token, other)
	}
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
	token, err := auth.RandomTokenFor(strings.NewReader(strings.Repeat("x", auth.TokenSize)), name)
	must(t, err)
	return token
}
