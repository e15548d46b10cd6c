package upload_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// digest sends a header with a form, or with a raw body if it has no parts.
func (c caller) digest(header string, parts []formPart) apitest.Answer {
	c.Helper()
	if parts == nil {
		return c.post("file=x", "content", "Repr-Digest", header)
	}
	return c.form("", parts, "Repr-Digest", header)
}

func TestMatchingDigestIsKept(t *testing.T) {
	t.Parallel()
	c := begin(t)
	want := digestOf("content")
	one := []formPart{aFile("file", "x", "content")}
	ofPart := []formPart{aFile("file", "x", "content", "Repr-Digest", want)}
	for _, k := range []struct {
		what, header string
		parts        []formPart // nil for a raw body
		want         string
	}{
		{"of a raw body", want, nil, want},
		{"of a raw body, with one of another kind", "sha-512=:AAAA:, " + want, nil, want},
		{"of a raw body, with a parameter", want + ";x=1", nil, want},
		{"of another kind", "sha-512=:AAAA:", nil, ""},
		{"that is missing", "", nil, ""},
		{"of a part", "", ofPart, want},
		{"of a form with one file", want, one, want},
		{"of a form, and of its part", want, ofPart, want},
	} {
		a := c.digest(k.header, k.parts).Want(200)
		apitest.Equal(t, k.what, c.Send("GET "+a.File().LinkURL, "").Header.Get("Repr-Digest"), k.want)
	}
}

func TestWrongDigestStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	wrong := digestOf("another content")
	plain, labelled := aFile("file", "x", "content"), aFile("file", "x", "content", "Repr-Digest", wrong)
	fine := aFile("file", "y", "fine")
	sum, other := sha256.Sum256([]byte("content")), sha256.Sum256([]byte("another content"))
	both := []string{hex.EncodeToString(sum[:]), hex.EncodeToString(other[:])}
	for what, k := range map[string]struct {
		header string
		parts  []formPart // nil for a raw body
		says   []string
	}{
		"of a raw body":                  {wrong, nil, both},
		"of a part":                      {"", []formPart{labelled}, both},
		"of a form":                      {wrong, []formPart{plain}, both},
		"of the second of two parts":     {"", []formPart{fine, labelled}, both},
		"of the first of two parts":      {"", []formPart{labelled, fine}, both},
		"of a form with several files":   {digestOf("content"), []formPart{plain, plain}, []string{"a single file"}},
		"of a form, other than a part's": {digestOf("content"), []formPart{labelled}, []string{"differs"}},
	} {
		c.digest(k.header, k.parts).Want(400, k.says...)
		c.wantNothing(what)
	}
}

func TestMalformedDigestIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, header := range []string{"sha-256=abc", "sha-256=::", "sha-256=:abc:", "sha-256=:AAAA:", "sha-256=", "sha-256", "x", digestOf("x") + ",", strings.TrimSuffix(digestOf("x"), ":")} {
		c.post("file=x", "x", "Repr-Digest", header).Want(400)
		c.wantNoneCreated(header)
		c.form("", []formPart{aFile("file", "x", "1", "Repr-Digest", header)}).Want(400)
		c.wantNothing(header)
	}
}
