package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDataOfAnEarlierReleaseStillWorks opens data written before upload
// sessions, recipients' links and events existed: the user ann, two files
// with links that were sent, one in the backup area, and a mail that still waits. Its
// journal, which holds nothing more, is refused first.
func TestDataOfAnEarlierReleaseStillWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/layout-2026-11.tar.gz", dir)
	state := func() (all string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			info, stat := d.Info()
			all += fmt.Sprintln(path, info.Size(), info.ModTime())
			return errors.Join(err, stat)
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	journal, before := filepath.Join(dir, "journal"), state()
	wantSentence(t, runFerry(t, dir, "", "check"), exitDamaged, journal+": a version from before the first release left this")
	if now := state(); now != before {
		t.Errorf("the data were changed:\n%s, and before\n%s", now, before)
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, "--keep-days", "0", "--backup-days", "0")
	const password = "an old password"
	get := func(path string, status int, want string) {
		t.Helper()
		resp, err := http.Get(s.base + path)
		must(t, err)
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != status || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %.100q, %v", path, resp.StatusCode, body, err)
		}
	}
	get("/download/file?lang=it&k=SfXT3s_i1BYxPL6tAyVdXxTS85pheNLVU1WWlrrlw2w", 200, "kept in the user area")
	get("/download/file/backup?lang=it&z=gRa2-6NhLZg2AYbippmh9YgAnBDlzZyqAzbywImITrQ", 200, "moved to the backup area")
	as := func(method, path string, status int, want string) {
		t.Helper()
		req, err := http.NewRequest(method, s.base+path, strings.NewReader("new content"))
		must(t, err)
		req.SetBasicAuth("ann", password)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != status || !strings.Contains(string(body), want) {
			t.Errorf("%s %s: %d %s, %v", method, path, resp.StatusCode, body, err)
		}
	}
	as("GET", "/download/list", 200, `"id":4,"name":"kept.txt"`)
	as("GET", "/files/3", 200, `"length":100000`)
	as("POST", "/files/2/restore", 200, "moved.txt")
	as("DELETE", "/files/4", 200, "kept.txt")
	as("POST", "/upload?file=new.txt", 200, `"id":5,"name":"new.txt"`)
	waitForMail(t, dir, "bob@example.com")
	if r := runFerry(t, dir, "", "user", "show", "ann"); r.code != exitOK || !strings.Contains(r.out, "ann@example.com") {
		t.Errorf("user show: %d %s%s", r.code, r.out, r.err)
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("the server ended with %d: %s", code, s.errs)
	}
}

func waitForMail(t *testing.T, dir, to string) {
	t.Helper()
	for range 400 {
		if r := runFerry(t, dir, "", "inbox"); strings.Contains(r.out, to) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("the mail to %s was not sent", to)
}

func unpack(t *testing.T, archive, into string) {
	t.Helper()
	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err == nil {
			err = unpackOne(r, h, filepath.Join(into, filepath.FromSlash(h.Name)))
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", archive, err))
		}
	}
}

func unpackOne(r io.Reader, h *tar.Header, path string) error {
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, 0o700)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, r)
	return err
}
