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

func TestADigestThatIsWrongStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	wrong := digestOf("another content")
	check := func(what, body, kind string, headers ...string) {
		resp := c.post("file=x", kind, strings.NewReader(body), headers...)
		says := resp.Header.Get("Ferry-Error")
		c.wantStatus(what, resp, 400)
		for _, content := range []string{"content", "another content"} {
			sum := sha256.Sum256([]byte(content))
			if !strings.Contains(says, hex.EncodeToString(sum[:])) {
				t.Errorf("%s: it says %q without the digest of %q", what, says, content)
			}
		}
		c.wantNothing(what)
	}
	check("a raw body", "content", "", "Repr-Digest", wrong)
	kind, body := encode(aFile("file", "x", "content", "Repr-Digest", wrong))
	check("a part", body, kind)
	kind, body = encode(aFile("file", "x", "content"))
	check("a form", body, kind, "Repr-Digest", wrong)
	kind, body = encode(aFile("file", "x", "fine"), aFile("file", "y", "content", "Repr-Digest", wrong))
	check("the second of two parts", body, kind)
	kind, body = encode(aFile("file", "x", "content", "Repr-Digest", wrong), aFile("file", "y", "fine"))
	check("the first of two parts", body, kind)
}

func TestADigestThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, header := range []string{"sha-256=abc", "sha-256=::", "sha-256=:abc:", "sha-256=:AAAA:", "sha-256=", strings.TrimSuffix(digestOf("x"), ":")} {
		c.wantStatus(header, c.post("file=x", "", strings.NewReader("x"), "Repr-Digest", header), 400)
		c.wantNoneCreated(header)
		c.wantStatus(header, c.form("", aFile("file", "x", "1", "Repr-Digest", header)), 400)
		c.wantNothing(header)
	}
}
