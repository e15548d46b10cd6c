package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ferry/shared/api/apitest"
)

// TestBackupOfARunningServiceIsComplete backs up while files come, go to the
// backup area and come back, and serves the restored copy.
func TestBackupOfARunningServiceIsComplete(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := serve(t, dir)
	var before []answered
	for i := range 30 {
		a := answered{name: fmt.Sprintf("before-%d", i), content: bytes.Repeat([]byte{byte(i)}, i*10_000)}
		if !post(s, s.password, &a) {
			t.Fatal("an upload failed")
		}
		before = append(before, a)
	}
	stop, churning := make(chan struct{}), sync.WaitGroup{}
	for worker := range 4 {
		churning.Go(func() { churn(s, worker, stop) })
	}
	for range 2 { // the second one adds to the first
		if r := runFerry(t, dir, "", "backup", "--quiet", copied); r.code != exitOK {
			t.Errorf("backup: code %d: %s", r.code, r.err)
		}
	}
	close(stop)
	churning.Wait()

	restored := filepath.Join(t.TempDir(), "restored")
	if r := runFerry(t, restored, "", "restore-data", "--quiet", copied); r.code != exitOK || !strings.Contains(r.out, " files; ") {
		t.Fatalf("restore-data: code %d: %s%s", r.code, r.out, r.err)
	}
	wantAll(t, restored, before)
	wantDownloads(t, serve(t, restored), s.password)
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
		a := answered{name: fmt.Sprintf("w%d-%d", worker, i), content: bytes.Repeat([]byte{byte(i)}, i*1000)}
		if !post(s, s.password, &a) {
			return
		}
		for _, f := range listed(s, s.password, "/download/list?limit=1") {
			requestAs(s, s.password, "DELETE", fmt.Sprintf("/files/%d", f.ID))
			if i%2 == 0 {
				requestAs(s, s.password, "POST", fmt.Sprintf("/files/%d/restore", f.ID))
			}
		}
	}
}

func requestAs(s *server, password, method, path string) (body []byte, status int) {
	req, err := http.NewRequest(method, s.base+path, nil)
	if err != nil {
		return nil, 0
	}
	req.SetBasicAuth("demo", password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(resp.Body)
	return body, resp.StatusCode
}

func listed(s *server, password, path string) []apitest.File {
	var e apitest.Envelope
	body, _ := requestAs(s, password, "GET", path)
	_ = json.Unmarshal(body, &e)
	return e.Files
}

// wantDownloads fetches everything that is listed in both areas.
func wantDownloads(t *testing.T, s *server, password string) {
	t.Helper()
	for _, path := range []string{"/download/list", "/download/list/backup"} {
		files := listed(s, password, path)
		if len(files) == 0 {
			t.Errorf("%s lists nothing: the test proves nothing", path)
		}
		for _, f := range files {
			resp, err := http.Get(f.LinkURL)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || n != f.Length {
				t.Errorf("%s is listed but not complete: %s, %d of %d bytes, %v", f.Name, resp.Status, n, f.Length, err)
			}
		}
	}
	s.stop(t)
}

func TestBackupReportsDamagedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	for _, name := range []string{"good", "changed", "gone"} {
		if !post(s, s.password, &answered{name: name, content: bytes.Repeat([]byte(name), 100_000)}) {
			t.Fatal("an upload failed")
		}
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
	r := runFerry(t, dir, "", "backup", filepath.Join(t.TempDir(), "copy"))
	if r.code != exitDamaged || !strings.Contains(r.err, "demo/2 changed") || !strings.Contains(r.err, "demo/3 gone") || strings.Contains(r.err, "good") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}

func TestBackupAddsToAnEarlierOne(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := serve(t, dir)
	for i, want := range []string{"1 files; 1 of them new, 5 B; 0 of an earlier backup removed", "2 files; 1 of them new, 5 B; 0 of", "2 files; 0 of them new, 0 B; 0 of"} {
		if i < 2 && !post(s, s.password, &answered{name: fmt.Sprint(i), content: []byte("hello")}) {
			t.Fatal("an upload failed")
		}
		if r := runFerry(t, dir, "", "backup", copied); r.code != exitOK || !strings.Contains(r.out, want) {
			t.Errorf("backup %d: code %d: %s%s, want %q", i, r.code, r.out, r.err, want)
		}
	}
	requestAs(s, s.password, "DELETE", "/files/1")
	if r := runFerry(t, dir, "", "backup", copied); r.code != exitOK || !strings.Contains(r.out, "2 files; 1 of them new, 5 B; 1 of") {
		t.Errorf("after a deletion: code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestBackupAndRestoreRefuseWrongDirectories(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	if r := runFerry(t, dir, "", "user", "add", "anna"); r.code != exitOK {
		t.Fatal(r.err)
	}
	if r := runFerry(t, dir, "", "backup", copied); r.code != exitOK {
		t.Fatal(r.err)
	}
	empty := t.TempDir()
	for _, test := range []struct {
		what, dir string
		args      []string
		code      int
		says      string
	}{
		{"into the data", dir, []string{"backup", filepath.Join(dir, "copy")}, exitUsage, "a copy cannot be inside the data"},
		{"around the data", dir, []string{"backup", filepath.Dir(dir)}, exitUsage, "a copy cannot be inside the data"},
		{"of nothing", empty, []string{"backup", copied}, exitSettings, "no Ferry data"},
		{"restored over data", dir, []string{"restore-data", copied}, exitExists, "there is Ferry data here already"},
		{"restored from nothing", filepath.Join(t.TempDir(), "new"), []string{"restore-data", empty}, exitSettings, "no Ferry data"},
	} {
		wantSentence(t, runFerry(t, test.dir, "", test.args...), test.code, test.says)
	}
}
