package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestARevocationThatIsLostIsNoticed puts back the file of the key while ferry waits for
// all processes, as another command does that changes the key at the same moment.
func TestARevocationThatIsLostIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	file := filepath.Join(dir, "link.key")
	before, err := os.ReadFile(file)
	must(t, err)
	ended := make(chan result)
	go func() { ended <- runFerry(t, dir, "", "key", "revoke", "1") }()
	for text := before; bytes.Equal(text, before); {
		if text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	must(t, errors.Join(os.WriteFile(file+".new", before, 0o600), os.Rename(file+".new", file)))
	if r := <-ended; r.code != exitOther || !strings.HasSuffix(r.err, "; repeat the command\n") {
		t.Errorf("%+v", r)
	}
}

func TestTheKeyIsRotatedAndRevokedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	first := s.upload("a", "content")
	opens := func(link string) bool {
		status, text := s.get(link)
		return status == http.StatusOK && text == "content"
	}
	file := filepath.Join(dir, "link.key")
	plain, err := os.ReadFile(file)
	if r := runFerry(t, dir, "", "key"); err != nil || r.code != exitOK || !strings.Contains(r.out, "1        -     -\n") {
		t.Fatalf("%v: %+v", err, r)
	}
	runFerry(t, dir, "", "key", "rotate").want(t, exitOK, "version 2 is for new files")
	if !opens(first) {
		t.Error("the rotation ended a link")
	}
	if r := runFerry(t, dir, "", "key", "revoke", "1"); r.code != exitOK || !regexp.MustCompile(`^version 1 is revoked; .+\nnew links for 1 file\n$`).MatchString(r.err) {
		t.Fatalf("%+v", r)
	}
	if opens(first) {
		t.Error("a link of the revoked version works")
	}
	s.upload("b", "content")
	for _, f := range s.files("GET", "/download/list", "") {
		if !opens(f.LinkURL) {
			t.Error("a link in the list does not work")
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the key: %v, %v", info, err)
	}
	r := runFerry(t, dir, "", "key", "list")
	if !regexp.MustCompile(`\n1 +- +20\S+ \S+\n2 +20\S+ \S+ +-\n$`).MatchString(r.out) || strings.Contains(r.out, strings.TrimSpace(string(plain))) {
		t.Errorf("%+v", r)
	}
	wantSentence(t, runFerry(t, dir, "", "key", "revoke", "7"), exitOther, "there is no version 7")
	wantSentence(t, runFerry(t, dir, "", "key", "revoke", "0"), exitUsage, "numbered from 1")
}
