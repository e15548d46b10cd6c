package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

const annsPassword = "a long password"

// home is a person's account on a machine: settings, cache and a working folder.
type home struct {
	t   *testing.T
	dir string
	env []string
}

func newHome(t *testing.T, env ...string) *home {
	return &home{t, t.TempDir(), env}
}

// command returns a ferry command as this person would run it.
func (h *home) command(stdin string, args ...string) *exec.Cmd {
	cmd := ferry(h.t.Context(), h.dir, args...)
	cmd.Env = append(cmd.Env, h.env...)
	cmd.Dir, cmd.Stdin = h.dir, strings.NewReader(stdin)
	return cmd
}

func (h *home) run(stdin string, args ...string) result {
	h.t.Helper()
	cmd := h.command(stdin, args...)
	return outcome(cmd, cmd.Run)
}

// up uploads what is named, and returns the link.
func (h *home) up(args ...string) string {
	h.t.Helper()
	return strings.TrimSpace(h.run("", append([]string{"up", "-q"}, args...)...).out)
}

// login logs in with the password of ann.
func (h *home) login(s *apitest.Server, name string) {
	h.t.Helper()
	h.run(annsPassword, "login", s.Root, "--user", name, "--password-stdin").want(h.t, exitOK)
}

func (h *home) write(name string, content []byte) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	must(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(h.t, os.WriteFile(path, content, 0o600))
}

func (h *home) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Error(err)
	}
	return string(b)
}

// reported is what --json says about a file.
type reported struct {
	ID, Length        int64
	Path, Link, Error string
}

// annsService starts a service and logs the user ann in; it returns the service and ann's home.
func annsService(t *testing.T) (*apitest.Server, *home) {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("ann", annsPassword)
	h := newHome(t)
	h.login(s, "ann")
	return s, h
}

func TestPasswdChangesThePasswordByAPIN(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	cmd := h.command("", "passwd", "--user", "ann")
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	must(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	must(t, cmd.Start())
	eventually(t, &errs, func() bool { return s.Deliver() > 0 })
	req, _ := http.NewRequest("GET", s.Root+"/inbox", nil)
	req.Header.Set("Accept", "application/json")
	pin := regexp.MustCompile(`\b[0-9]{8}\b`).FindString(s.Text(s.Do(req)))
	_, err = io.WriteString(in, pin+"\nmy other password\nmy other password\n")
	must(t, err)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	s.Login("ann", "my other password")
}

// TestAFolderStopsWhereTheNetworkFails uploads through a proxy that passes one file on, and
// then ends each connection.
func TestAFolderStopsWhereTheNetworkFails(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	backend, _ := url.Parse(s.Root)
	var sent atomic.Int64
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/upload") && sent.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	h.env = append(h.env, "FERRY_URL="+proxy.URL, "FERRY_USER=ann", "FERRY_PASSWORD="+annsPassword)
	for i := range 5 {
		h.write(fmt.Sprint("folder/", i+1), []byte("content"))
	}
	r := h.run("", "up", "folder", "--each", "--connections=1", "--tries=2", "--json")
	var all []reported
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || len(all) != 5 || sent.Load() > 4 { // HTTP tries once more by itself
		t.Fatalf("%d requests: %s%s", sent.Load(), r.out, r.err)
	}
	for i, one := range all {
		if (one.Error == "") != (i == 0) || one.Path != fmt.Sprint("folder/", i+1) {
			t.Errorf("%+v", one)
		}
	}
	if r.code != exitPort ||
		!strings.Contains(
			r.err,
			"\nferry: stopped, as the network failed: 4 of 5 files are left (--json names them)\n",
		) ||
		!strings.Contains(r.err, "\nferry: folder/2: ") || strings.Contains(r.err, "folder/3") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	wantSentence(t, h.run("", "up", "folder/1", "--tries=1", "-q"), exitPort, "cannot be reached")
}

// TestEachLinkIsOfItsOwnFile uploads files of one name and length, several at once, and removes one by the id
// that was printed.
func TestEachLinkIsOfItsOwnFile(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	s.AddUser("bob", annsPassword)
	for i := range 40 {
		folder := fmt.Sprint("site/", i+10)
		h.write(folder+"/index.html", []byte(folder))
	}
	h.write("hello.txt", []byte("a greeting"))
	h.write("photos/hello.txt", []byte("a portrait"))
	for _, args := range []string{
		"site", "site --to bob", "photos/hello.txt hello.txt", "hello.txt photos/hello.txt --session",
	} {
		r := h.run("", append([]string{"up", "--each", "--json"}, strings.Fields(args)...)...)
		r.want(t, exitOK)
		var all []reported
		must(t, json.Unmarshal([]byte(r.out), &all))
		for _, one := range all {
			if got, want := s.Get(one.Link), h.read(one.Path); got != want {
				t.Errorf("up %s: the link of %s, with %q, gives %q", args, one.Path, want, got)
			}
		}
		if strings.HasPrefix(args, "photos") {
			h.run("", "rm", fmt.Sprint(all[0].ID)).want(t, exitOK)
			expect.Equal(t, "what is left", s.Send("GET "+all[1].Link, "").Text, "a greeting")
		}
	}
}
