package upload_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
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
		body, kind := "content", ""
		if k.parts != nil {
			kind, body = encode(k.parts...)
		}
		link := c.Decode(c.post("file=x", kind, strings.NewReader(body), "Repr-Digest", k.header), 200).Files[0].LinkURL
		if got := c.Request("GET", strings.TrimPrefix(link, c.Base), nil).Header.Get("Repr-Digest"); got != k.want {
			t.Errorf("a digest %s comes back as %q", k.what, got)
		}
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
		body, kind, query := "content", "", "file=x"
		if k.parts != nil {
			kind, body = encode(k.parts...)
			query = ""
		}
		resp := c.post(query, kind, strings.NewReader(body), "Repr-Digest", k.header)
		c.wantStatus(what, resp, 400)
		for _, words := range k.says {
			if says := resp.Header.Get("Ferry-Error"); !strings.Contains(says, words) {
				t.Errorf("a digest %s: %q does not say %q", what, says, words)
			}
		}
		c.wantNothing(what)
	}
}

func TestMalformedDigestIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, header := range []string{"sha-256=abc", "sha-256=::", "sha-256=:abc:", "sha-256=:AAAA:", "sha-256=", "sha-256", "x", digestOf("x") + ",", strings.TrimSuffix(digestOf("x"), ":")} {
		c.wantStatus(header, c.post("file=x", "", strings.NewReader("x"), "Repr-Digest", header), 400)
		c.wantNoneCreated(header)
		c.wantStatus(header, c.form("", aFile("file", "x", "1", "Repr-Digest", header)), 400)
		c.wantNothing(header)
	}
}
