package blobtest

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/blob"
)

func keyTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"keys of all allowed forms work":     goodKeys,
		"keys that differ in case are apart": caseKeys,
		"every method refuses a bad key":     badKeys,
	}
}

func goodKeys(t *testing.T, s suite) {
	owner := s.owner + "+user@example.org_-."
	for _, key := range []string{
		owner + "/a", owner + "/+@_-.", owner + "/0", owner + "/-", owner + "/a..b", owner + "/a+b@c", owner + "/" + strings.Repeat("n", 128),
		owner + strings.Repeat("o", 128-len(owner)) + "/" + strings.Repeat("+", 128), owner + "/index.html", owner + "/tmp", owner + "/files",
	} {
		data := content(t, 100)
		s.create(blob.Files, key, data)
		s.wantContent(blob.Files, key, data)
		s.copy(blob.Files, key, blob.Backup, key)
		s.wantContent(blob.Backup, key, data)
		s.delete(blob.Files, key)
		s.wantNone(blob.Files, key)
	}
	if got := len(s.list(blob.Backup)); got != 11 {
		t.Errorf("%d keys are listed, want 11", got)
	}
}

func caseKeys(t *testing.T, s suite) {
	for _, key := range []string{s.key("k"), s.key("K"), s.owner + "X/k", s.owner + "x/k"} {
		s.create(blob.Files, key, []byte(key))
	}
	for _, key := range []string{s.key("k"), s.key("K"), s.owner + "X/k", s.owner + "x/k"} {
		s.wantContent(blob.Files, key, []byte(key))
	}
}

func badKeys(t *testing.T, s suite) {
	good := s.key("good")
	s.create(blob.Files, good, []byte("x"))
	for _, bad := range []string{
		"", "/", "a", "a/", "/a", "a/b/c", "a//b", "/a/b", "a/b/", "./a", "../a", "a/.", "a/..", "a/.b", ".a/b", "../../etc/passwd",
		"a b/c", "a/b c", "a\\b/c", "a/b\\c", "a/b\x00", "a/b\n", "é/a", "a/文", "a/b*", "a/b?", "a/b%2f", "a/b:c", "a/b~",
		strings.Repeat("a", 129) + "/b", "a/" + strings.Repeat("b", 129),
	} {
		errs := s.callAll(t.Context(), blob.Files, bad, bad)
		delete(errs, "List")
		errs["Copy from bad"] = s.Copy(t.Context(), blob.Files, bad, blob.Backup, s.key("new"))
		errs["Copy to bad"] = s.Copy(t.Context(), blob.Files, good, blob.Backup, bad)
		_, errs["SignGet"] = s.SignGet(t.Context(), blob.Files, bad, signed())
		for name, err := range errs {
			if err == nil || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrUnsupported) {
				t.Errorf("key %q, %s: got error %v, want one that speaks of the key", bad, name, err)
			}
		}
	}
	s.wantNone(blob.Backup, s.key("new"))
}
