package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyServeAndUserAddCreateData(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, command := range []string{
		"user list", "user show anna", "user disable anna", "user enable anna", "user reset anna", "user remove anna --yes", "inbox", "sweep", "outbox list", "outbox show a", "outbox retry a", "outbox cancel a", "outbox suppressed", "outbox allow a",
	} {
		missing := filepath.Join(t.TempDir(), "typo")
		wantSentence(t, runFerry(t, missing, "", strings.Fields(command)...), exitSettings, missing+": there is no Ferry data here")
		if _, err := os.Stat(missing); err == nil {
			t.Errorf("ferry %s made a directory", command)
		}
		empty := t.TempDir()
		wantSentence(t, runFerry(t, empty, "", strings.Fields(command)...), exitSettings, "--data or FERRY_DATA")
		if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
			t.Errorf("ferry %s left %v in an empty directory, %v", command, left, err)
		}
		wantSentence(t, runFerry(t, file, "", strings.Fields(command)...), exitSettings, file)
	}
	begun := filepath.Join(t.TempDir(), "new")
	for _, command := range []string{"user add anna", "user list"} {
		runFerry(t, begun, "", strings.Fields(command)...).want(t, exitOK)
	}
}

func TestDamagedLinkKeyIsReportedAsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "link.key")
	runFerry(t, dir, "", "user", "add", "anna").want(t, exitOK)
	for what, text := range map[string]string{"empty": "", "cut off": "abcdef", "too long": strings.Repeat("a", 50), "no text": "\x00\xff"} {
		for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"user", "add", "bob"}} {
			must(t, os.WriteFile(key, []byte(text), 0o600))
			r := runFerry(t, dir, "", args...)
			wantSentence(t, r, exitDamaged, key)
			if got, err := os.ReadFile(key); err != nil || string(got) != text {
				t.Errorf("%s: the file was changed, %v", what, err)
			}
		}
	}
}

func TestLostLinkKeyIsReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "link.key")
	if r := runFerry(t, dir, "", "user", "add", "anna"); r.code != exitOK || strings.Contains(r.err, "key") {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	must(t, os.Remove(key))
	for _, args := range [][]string{{"check"}, {"check", "--repair"}, {"backup", filepath.Join(dir, "copy")}} {
		wantSentence(t, runFerry(t, dir, "", args...), exitDamaged, key+": the file is missing")
		if _, err := os.Stat(key); err == nil {
			t.Fatalf("%q made a new key", args)
		}
	}
	s := serve(t, dir, "--log", "text")
	if code := s.stop(t); code != exitOK || !strings.Contains(s.errs.String(), "all links that were sent before are dead") || !strings.Contains(s.errs.String(), key) {
		t.Errorf("code %d: %s", code, s.errs)
	}
	if r := runFerry(t, dir, "", "user", "list"); r.code != exitOK || r.err != "" {
		t.Errorf("a second time: code %d: %s", r.code, r.err)
	}
}

func TestDamagedTableIsReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "table.sqlite"), bytes.Repeat([]byte("garbage "), 1000), 0o600))
	r := runFerry(t, dir, "", "user", "list")
	wantSentence(t, r, exitDamaged, dir)
	if strings.Count(r.err, "damaged") != 1 || strings.Contains(r.err, "PRAGMA") {
		t.Error(r.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "link.key")); err == nil {
		t.Error("a link key was made")
	}
}

// TestFilesWithoutTheirTableAreKept: with a new table, the sweeper would take all
// of them for leftovers.
func TestFilesWithoutTheirTableAreKept(t *testing.T) {
	t.Parallel()
	for area, harm := range map[string]func(path string) error{
		"files": os.Remove, "backup": func(path string) error { return os.Truncate(path, 0) },
	} {
		dir := t.TempDir()
		key, file := filepath.Join(dir, "link.key"), filepath.Join(dir, area, "anna", "1-x")
		runFerry(t, dir, "", "user", "add", "anna").want(t, exitOK)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600)))
		must(t, errors.Join(harm(filepath.Join(dir, "table.sqlite")), os.Remove(key)))
		for _, args := range []string{"serve --addr 127.0.0.1:0", "sweep", "user add bob"} {
			wantSentence(t, runFerry(t, dir, "", strings.Fields(args)...), exitDamaged, dir+": table.sqlite is missing or empty")
		}
		_, lost := os.Stat(file)
		if _, none := os.Stat(key); lost != nil || none == nil {
			t.Errorf("%s: the file: %v; the key: %v", area, lost, none)
		}
		must(t, os.RemoveAll(filepath.Dir(file)))
		runFerry(t, dir, "", "user", "add", "bob").want(t, exitOK)
	}
}
