package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of its own and returns its folder.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// user is demo with a bearer.
type user struct {
	*testing.T
	*server
}

func signedUp(t *testing.T, s *server) user {
	t.Helper()
	status, answer := s.do("POST", "/auth/login", "")
	var in struct{ Token string }
	if err := json.Unmarshal([]byte(answer), &in); status != 200 || err != nil {
		t.Fatalf("login: %d: %s", status, answer)
	}
	s.bearer = in.Token
	return user{t, s}
}

func (u user) want(what string, status int, method, path, body string) string {
	u.Helper()
	got, text := u.do(method, path, body)
	if got != status {
		u.Errorf("%s: status %d, want %d: %.200s", what, got, status, text)
	}
	return text
}

// kinds are uploads that are stored in different ways: in the table and in a file.
func kinds() map[string]string {
	return map[string]string{"in the table": strings.Repeat("x", 1000), "a file": strings.Repeat("x", 100_000)}
}

// session begins a session and sends its only part, and returns the statuses of both.
func (u user) session(body string) (begun, sent int) {
	u.Helper()
	begun, text := u.do("POST", "/uploads", fmt.Sprintf(`{"name":"s","length":%d}`, len(body)))
	var s struct{ ID string }
	if json.Unmarshal([]byte(text), &s) != nil || begun != 201 {
		return begun, 0
	}
	_, text = u.do("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1]}`)
	var parts struct{ Parts []struct{ URL string } }
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts.Parts) != 1 {
		u.Logf("parts: %s", text)
		return begun, 0
	}
	sent, _ = u.do("PUT", strings.TrimPrefix(parts.Parts[0].URL, u.base), body)
	return begun, sent
}

// wantAll checks that every kind of upload works, and so do downloads and logins.
func (u user) wantAll(when string) {
	u.Helper()
	for kind, body := range kinds() {
		text := u.want(when+": an upload, "+kind, 200, "POST", "/upload?file=x", body)
		var list struct{ Files []struct{ LinkURL string } }
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Files) == 0 {
			u.Fatalf("%s: %v: %s", when, err, text)
		}
		path := strings.TrimPrefix(list.Files[0].LinkURL, u.base)
		if got := u.want(when+": a download, "+kind, 200, "GET", path, ""); got != body {
			u.Errorf("%s: a download, %s: %d bytes", when, kind, len(got))
		}
	}
	if begun, sent := u.session("a part"); begun != 201 || sent != 200 {
		u.Errorf("%s: a session: status %d, its part %d", when, begun, sent)
	}
	u.want(when+": a login", 200, "POST", "/auth/login", "")
}

// TestNothingOfTheEnvironmentIsRemembered takes something away from a new server, lets
// everything be tried, and gives it back.
func TestNothingOfTheEnvironmentIsRemembered(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		disk   string // options of its file system; empty if any will do
		starve func(t *testing.T, s *server, dir string) (relieve func())
		status int // of an upload that becomes a file
	}{
		"file descriptors": {starve: noDescriptors, status: 503},
		"disk space":       {disk: "size=8m", starve: noSpace, status: 507},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if k.disk != "" {
				dir = smallDisk(t, k.disk)
			}
			s := serve(t, dir, "--reserve", "0", "--log", "json")
			u := signedUp(t, s)
			relieve := k.starve(t, s, dir)
			for range 3 {
				for kind, body := range kinds() {
					if status, text := u.do("POST", "/upload?file=x", body); status != k.status &&
						(status != 200 || kind == "a file") {
						t.Errorf("an upload without %s, %s: status %d: %s", what, kind, status, text)
					}
				}
				if begun, sent := u.session("a part"); begun != k.status && sent != 200 {
					t.Errorf("a session without %s: status %d, its part %d", what, begun, sent)
				}
				u.do("GET", "/download/list", "")
				u.do("POST", "/auth/login", "")
			}
			relieve()
			u.wantAll("with " + what + " again")
			if code := s.stop(t); code != exitOK {
				t.Errorf("the server ended with code %d: %s", code, s.errs)
			}
			warned := strings.Contains(s.errs.String(), `"level":"WARN","msg":"request"`)
			if !warned || strings.Contains(s.errs.String(), `"level":"ERROR"`) {
				t.Errorf("without %s the log is %s", what, s.errs)
			}
		})
	}
}

// noDescriptors lowers the number of file descriptors to what the server has.
func noDescriptors(t *testing.T, s *server, _ string) func() {
	set := func(soft uint64) (old uint64) {
		var was unix.Rlimit
		if err := unix.Prlimit(s.Process.Pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
			t.Skipf("cannot limit the server: %v", err)
		}
		err := unix.Prlimit(s.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: soft, Max: was.Max}, nil)
		if err != nil {
			t.Skipf("cannot limit the server: %v", err)
		}
		return was.Cur
	}
	old := set(3)
	return func() { set(old) }
}

func noSpace(t *testing.T, _ *server, dir string) func() {
	filler, err := os.Create(filepath.Join(dir, "filler"))
	must(t, err)
	defer filler.Close()
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	return func() { _ = os.Remove(filler.Name()) }
}

// moves moves a file to the other area, again while too many of its moves wait for its bytes.
func (u user) moves(method, path string) {
	u.Helper()
	status, text := 503, ""
	for end := time.Now().Add(10 * time.Minute); status == 503 && time.Now().Before(end); {
		status, text = u.do(method, path, "")
	}
	if status != 200 {
		u.Fatalf("%s %s: status %d: %s", method, path, status, text)
	}
}

// TestReserveKeepsTheRestWorking fills a disk with uploads, and then writes more than its
// reserve without one.
func TestReserveKeepsTheRestWorking(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=40m") // the reserve is a tenth
	s := serve(t, dir)
	u := signedUp(t, s)
	status := 200
	for n := 0; status == 200 && n < 100; n++ {
		status, _ = u.do("POST", "/upload?file=x", strings.Repeat("x", 1<<20))
	}
	status = 200
	for n := 0; status == 200 && n < 200; n++ {
		status, _ = u.do("POST", "/upload?file=x", strings.Repeat("x", 30_000))
	}
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	if free := int64(st.Bavail) * st.Bsize; status != 507 || free < 3<<20 || free > 6<<20 {
		t.Errorf("status %d with %d bytes free, want 507 with a tenth of 40 MiB", status, free)
	}
	for _, size := range []int{30_000, 100_000} {
		u.want("an upload below the reserve", 507, "POST", "/upload?file=x", strings.Repeat("x", size))
	}
	u.want("a session below the reserve", 507, "POST", "/uploads", `{"name":"s","length":1000000}`)
	for range 400 { // each writes several pages
		u.moves("DELETE", "/files/1")
		u.moves("POST", "/files/1/restore")
	}
	u.want("a login", 200, "POST", "/auth/login", "")
	u.want("a forgotten password", 200, "GET", "/auth/forget?u=demo", "")
	r := runFerry(t, dir, "", "user", "disable", "demo")
	if r.code != exitOK {
		t.Errorf("disabling a user: %s", r.err)
	}
	runFerry(t, dir, "", "user", "enable", "demo")
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=80m"))
	u.bearer = "" // disabling the user ended it
	u.wantAll("with a larger disk")
}
