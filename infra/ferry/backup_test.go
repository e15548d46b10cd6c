package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
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
				t.Errorf("%s is listed but not complete: status %d, %d of %d bytes",
					f.Name, status, len(text), f.Length)
			}
		}
	}
	s.stop(t)
}
