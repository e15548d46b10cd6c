package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

func TestAScreenKeepsTextAsItIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Zürich, 東京, مرحبا\tx\n": "Zürich, 東京, مرحبا\tx\n", "a\x1b[31mb": "a\uFFFD[31mb", "a\x9bb\xff": "a\uFFFDb\uFFFD", "a\u009bb": "a\uFFFDb", "a\rb\bc\x7f": "a\uFFFDb\uFFFDc\uFFFD", "a\u2066b\u202e": "a\uFFFDb\uFFFD",
	} {
		var out bytes.Buffer
		if n, err := (Screen{Raw: &out}).Write([]byte(text)); out.String() != want || n != len(text) || err != nil {
			t.Errorf("%q is printed as %q, %d, %v", text, out.String(), n, err)
		}
		var written bytes.Buffer
		expect.NoErr(t, writeJSON(&written, text, ""))
		var got string
		expect.NoErr(t, json.Unmarshal(written.Bytes(), &got))
		if got != strings.ToValidUTF8(text, "\uFFFD") ||
			strings.ContainsFunc(strings.TrimSpace(written.String()), controls) {
			t.Errorf("%q is %s in JSON", text, written.String())
		}
	}
}
