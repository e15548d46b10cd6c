package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// list returns the links that the list of the user demo shows, newest first.
func (s *server) list(t *testing.T) (links []string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(s.request(t, "GET", "/download/list"))
	must(t, err)
	defer resp.Body.Close()
	var answer struct{ Files []struct{ LinkURL string } }
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	for _, f := range answer.Files {
		links = append(links, f.LinkURL)
	}
	return links
}

// send uploads a file and returns its link.
func (s *server) send(t *testing.T) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(s.request(t, "POST", "/upload?file=a"))
	must(t, err)
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Fatalf("uploading: %s", resp.Status)
	}
	return s.list(t)[0]
}

// opens reports whether a link works.
func opens(t *testing.T, link string) bool {
	t.Helper()
	resp, err := http.Get(link)
	must(t, err)
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

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
	first := s.send(t)
	file := filepath.Join(dir, "link.key")
	plain, err := os.ReadFile(file)
	if r := runFerry(t, dir, "", "key"); err != nil || r.code != exitOK || !strings.Contains(r.out, "1        -     -\n") {
		t.Fatalf("%v: %+v", err, r)
	}
	if r := runFerry(t, dir, "", "key", "rotate"); r.code != exitOK || !strings.Contains(r.err, "version 2 is for new files") {
		t.Fatalf("%+v", r)
	}
	if !opens(t, first) {
		t.Error("the rotation ended a link")
	}
	if r := runFerry(t, dir, "", "key", "revoke", "1"); r.code != exitOK || !regexp.MustCompile(`^version 1 is revoked; .+\nnew links for 1 file\n$`).MatchString(r.err) {
		t.Fatalf("%+v", r)
	}
	if opens(t, first) {
		t.Error("a link of the revoked version works")
	}
	for _, link := range append(s.list(t), s.send(t)) {
		if !opens(t, link) {
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
