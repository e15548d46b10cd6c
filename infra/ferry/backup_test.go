package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // another client of the table
)

// TestBackupOfARunningServiceIsComplete backs up while files come, go to the
// backup area and come back, and serves the restored copy.
func TestBackupOfARunningServiceIsComplete(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := serve(t, dir)
	var before []answered
	for i := range 30 {
		a := answered{name: fmt.Sprintf("before-%d", i), content: strings.Repeat(string(rune(i)), i*10_000)}
		if a.link = s.upload(a.name, a.content); a.link == "" {
			t.Fatal("an upload failed")
		}
		before = append(before, a)
	}
	stop, churning := make(chan struct{}), sync.WaitGroup{}
	for worker := range 4 {
		churning.Go(func() { churn(s, worker, stop) })
	}
	for range 2 { // the second one adds to the first
		runFerry(t, dir, "", "backup", "--quiet", copied).want(t, exitOK)
	}
	close(stop)
	churning.Wait()

	restored := filepath.Join(t.TempDir(), "restored")
	runFerry(t, restored, "", "restore-data", "--quiet", copied).want(t, exitOK, " files; ")
	wantAll(t, restored, before)
	again := serve(t, restored)
	again.password = s.password
	wantDownloads(t, again)
	wantNothingElse(t, restored, before)
}

// churn uploads, deletes and restores until told to stop.
func churn(s *server, worker int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if s.upload(fmt.Sprintf("w%d-%d", worker, i), strings.Repeat("x", i*1000)) == "" {
			return
		}
		for _, f := range s.files("GET", "/download/list?limit=1", "") {
			s.do("DELETE", fmt.Sprintf("/files/%d", f.ID), "")
			if i%2 == 0 {
				s.do("POST", fmt.Sprintf("/files/%d/restore", f.ID), "")
			}
		}
	}
}

// wantDownloads fetches everything that is listed in both areas.
func wantDownloads(t *testing.T, s *server) {
	t.Helper()
	for _, path := range []string{"/download/list", "/download/list/backup"} {
		files := s.files("GET", path, "")
		if len(files) == 0 {
			t.Errorf("%s lists nothing: the test proves nothing", path)
		}
		for _, f := range files {
			if status, text := s.get(f.LinkURL); status != http.StatusOK || int64(len(text)) != f.Length {
				t.Errorf("%s is listed but not complete: status %d, %d of %d bytes", f.Name, status, len(text), f.Length)
			}
		}
	}
	s.stop(t)
}

// TestDamagedFilesAreNamedAndRestored restores them beside a server.
func TestDamagedFilesAreNamedAndRestored(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := serve(t, dir)
	for i, name := range []string{"good", "changed", "gone"} {
		if s.upload(name, strings.Repeat(name, 100_000)) == "" {
			t.Fatal("an upload failed")
		}
		want := []string{": 1 file; 1 new, 400 kB\n", ": 2 files; 1 new, 700 kB\n", ": 3 files; 1 new, 400 kB\n"}[i]
		runFerry(t, dir, "", "backup", copied).prints(t, exitOK, copied+want)
	}
	s.stop(t)
	for id, damage := range map[int]func(string) error{
		2: func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("CHANGED"), 100_000), 0o600) },
		3: os.Remove,
	} {
		paths, _ := filepath.Glob(filepath.Join(dir, "files", "*", fmt.Sprintf("%d-*", id)))
		if len(paths) != 1 {
			t.Fatalf("file %d is at %v", id, paths)
		}
		if err := damage(paths[0]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r := runFerry(t, dir, "", "backup", "--verify", "--quiet", copied)
		const want = "damaged: demo/2 changed\ndamaged: demo/3 gone\n" +
			"ferry: this is damaged or lost; everything else was copied, and nothing was removed\n"
		if r.code != exitDamaged || r.err != want {
			t.Errorf("code %d: %s", r.code, r.err)
		}
	}
	serve(t, dir)
	for _, c := range []struct {
		file string
		code int
		says string
	}{
		{"Demo/2", exitOK, dir + ": demo/2 changed restored, 700 kB\n"},
		{"demo/3", exitOK, dir + ": demo/3 gone restored, 400 kB\n"},
		{"demo/4", exitNoFile, "ferry: demo/4: no such file: there is no record of it; its user may have removed it\n"},
		{"demo/x", exitUsage, "ferry: --file demo/x: want USER/ID, such as anna/12\n"},
	} {
		if r := runFerry(t, dir, "", "restore-data", copied, "--file", c.file); r.code != c.code || r.out+r.err != c.says {
			t.Errorf("restoring %s: code %d: %s%s", c.file, r.code, r.out, r.err)
		}
	}
	runFerry(t, dir, "", "check", "--quiet").want(t, exitOK)
	runFerry(t, dir, "", "backup", "--quiet", copied).prints(t, exitOK, copied+": 3 files; 2 new, 1.1 MB; 2 of an earlier backup removed\n")
}

// TestBackupAndRestoreRefuseWrongDirectories also restores from what no backup has.
func TestBackupAndRestoreRefuseWrongDirectories(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	runFerry(t, dir, "", "user", "add", "anna").want(t, exitOK)
	runFerry(t, dir, "", "backup", copied).want(t, exitOK)
	empty, foreign := t.TempDir(), t.TempDir()
	notes := filepath.Join(foreign, "notes")
	if err := os.WriteFile(notes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, dir string
		args      []string
		code      int
		says      string
	}{
		{"into the data", dir, []string{"backup", filepath.Join(dir, "copy")}, exitUsage, "a copy cannot be inside the data"},
		{"around the data", dir, []string{"backup", filepath.Dir(dir)}, exitUsage, "a copy cannot be inside the data"},
		{"into a folder of others", dir, []string{"backup", foreign}, exitExists, foreign + ": the directory is not empty and has no table of Ferry; name another one"},
		{"into a file", dir, []string{"backup", notes}, exitSettings, "not a directory"},
		{"restored into a folder of others", foreign, []string{"restore-data", copied}, exitExists, "the directory is not empty and has no table of Ferry"},
		{"of nothing", empty, []string{"backup", copied}, exitSettings, "no Ferry data"},
		{"restored over data", dir, []string{"restore-data", copied}, exitExists, "there is Ferry data here already; name another directory with --data"},
		{"restored from nothing", filepath.Join(t.TempDir(), "new"), []string{"restore-data", empty}, exitSettings, "no Ferry data"},
	} {
		wantSentence(t, runFerry(t, test.dir, "", test.args...), test.code, test.says)
	}
	statement := func(text string) func(string) error {
		return func(backup string) error {
			db, err := sql.Open("sqlite", filepath.Join(backup, "table.sqlite"))
			if err == nil {
				_, err = db.Exec(text)
			}
			return errors.Join(err, db.Close())
		}
	}
	for says, change := range map[string]func(backup string) error{
		"": func(string) error { return nil },
		"link.key: the file is damaged": func(backup string) error {
			return os.WriteFile(filepath.Join(backup, "link.key"), []byte("key"), 0o600)
		},
		"files/link: a backup can have only plain files": func(backup string) error {
			return os.Symlink(filepath.Join(backup, "link.key"), filepath.Join(backup, "files", "link"))
		},
		"tmp/pipe: a backup can have only plain files": func(backup string) error {
			return syscall.Mkfifo(filepath.Join(backup, "tmp", "pipe"), 0o600)
		},
		"program: it has triggers or views":  statement("CREATE TRIGGER t DELETE ON items BEGIN SELECT 1; END"),
		"program: it has triggers or views ": statement("CREATE VIEW v AS SELECT 1"),
	} {
		backup, alias := t.TempDir(), filepath.Join(t.TempDir(), "alias")
		err := errors.Join(os.CopyFS(backup, os.DirFS(copied)), os.Symlink(backup, alias), change(backup))
		if err != nil {
			t.Fatal(err)
		}
		all, one := runFerry(t, t.TempDir(), "", "restore-data", alias), runFerry(t, dir, "", "restore-data", alias, "--file", "anna/1")
		if says == "" {
			if all.code != exitOK || all.out[strings.LastIndex(all.out, ": "):] != ": 0 files; 0 new, 0 B\n" || one.code != exitNoFile {
				t.Errorf("restoring through a link to the backup: %+v, %+v", all, one)
			}
			continue
		}
		wantSentence(t, all, exitDamaged, strings.TrimSpace(says))
		wantSentence(t, one, exitDamaged, strings.TrimSpace(says))
	}
}
