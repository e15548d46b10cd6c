package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
	"ferry/shared/users"
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

// bearer returns what is saved of a login.
func (h *home) bearer() string {
	h.t.Helper()
	return regexp.MustCompile(`"bearer":"([^"]+)"`).FindStringSubmatch(h.read("config/ferry/login.json"))[1]
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

func TestPeopleUseTheServiceThroughCommands(t *testing.T) {
	t.Parallel()
	service, h := annsService(t)
	h.write("a.txt", []byte("first"))
	h.write("b/a.txt", []byte("second"))
	h.write("b/c/d.txt", []byte("third"))
	must(t, os.Symlink("/etc/passwd", filepath.Join(h.dir, "b", "link")))
	must(t, syscall.Mkfifo(filepath.Join(h.dir, "pipe"), 0o600))
	takeSteps(t, h.run, "people.txt", service.Root)
	if _, err := os.Stat(filepath.Join(h.dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a file stays: %v", err)
	}
	if got := h.read("got"); got != "third" && got != "second" {
		t.Errorf("got holds %q", got)
	}
}

// TestUsageIsSummedWhenItIsAskedFor looks at a user without a quota, whose uploads count nothing.
func TestUsageIsSummedWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	for i, used := range []int{5, 9, 9} {
		switch i {
		case 0:
			s.upload("a", "12345")
		case 1:
			s.upload("b", "6789")
		case 2:
			s.do("DELETE", "/files/1", "") // the backup area counts too
		}
		run := func(args ...string) result { return runFerry(t, dir, "", args...) }
		run("user", "list", "--json").want(t, exitOK, fmt.Sprintf(`"used": %d,`, used))
		run("user", "show", "demo", "--json").want(t, exitOK, fmt.Sprintf(`"used": %d,`, used))
		run("user", "show", "demo").want(t, exitOK, fmt.Sprintf("used          %d B, without a quota", used))
	}
	if _, text := s.do("GET", "/me", ""); strings.Contains(text, "used") || strings.Contains(text, "quota") {
		t.Errorf("an account without a quota shows %s", text)
	}
}

func TestDownloadNeedsOnlyTheLink(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("fête.txt", []byte("content"))
	link := h.up("fête.txt")
	stranger := newHome(t)
	r := stranger.run("", "get", link, "--json")
	var got []reported
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != exitOK || len(got) != 1 || got[0].Path != "fête.txt" || got[0].Length != 7 {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	if text := stranger.read("fête.txt"); text != "content" {
		t.Errorf("the file holds %q", text)
	}
	if _, err := os.Stat(filepath.Join(stranger.dir, "config")); err == nil {
		t.Error("a download by link created settings")
	}
}

func TestLoginIsOnlyForItsOwnerAndItsService(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	dir := filepath.Join(h.dir, "config", "ferry")
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "login.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if strings.Contains(h.read("config/ferry/login.json"), annsPassword) {
		t.Error("the file holds the password")
	}
	other := apitest.New(t)
	h.env = append(h.env, "FERRY_URL="+other.Root)
	h.run("", "ls").want(t, exitPermission, "not logged in to "+other.Base)
	if strings.Contains(other.Log.String(), h.bearer()) {
		t.Error("the bearer went to another service")
	}
	h.env = h.env[:len(h.env)-1]
	for range 2 {
		s.Clock.Advance(80 * 24 * time.Hour)
		h.run("", "ls").want(t, exitOK)
	}
	s.Clock.Advance(92 * 24 * time.Hour)
	h.run("", "ls").want(t, exitPermission, "has expired; run ferry login")
	h.env = append(h.env, "FERRY_PASSWORD="+annsPassword)
	h.run("", "ls").want(t, exitOK)
}

func TestATokenWorksUntilItIsEnded(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	token := strings.TrimSpace(h.run("", "token", "add", "backup", "--scope", "all").out)
	ask := func() int { return s.Send("GET /download/list", "", "Authorization", "Bearer "+token).Code }
	if status := ask(); status != 200 {
		t.Fatalf("the token gives %d", status)
	}
	var all []client.Token
	must(t, json.Unmarshal([]byte(h.run("", "token", "list", "--json").out), &all))
	if all[0].Name != "backup" {
		slices.Reverse(all)
	}
	h.run("", "token", "rm", all[0].ID).want(t, exitOK, "has ended")
	if status := ask(); status != 401 || all[0].Name != "backup" || all[0].Used.IsZero() || !all[1].This {
		t.Errorf("the token gives %d; the list was %+v", status, all)
	}
	h.run("", "token", "rm", "--all").want(t, exitOK, "run ferry login")
	h.run("", "ls").want(t, exitPermission)
}

func TestANewLoginAndALogoutEndTheLoginBefore(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	want := func(what, bearer string, status int) {
		t.Helper()
		expect.Equal(t, what, s.Send("GET /me", "", "Authorization", "Bearer "+bearer).Code, status)
	}
	first := h.bearer()
	h.login(s, "ann")
	second := h.bearer()
	want("the first login", first, 401)
	want("the second login", second, 200)
	h.run("", "logout").want(t, exitOK)
	want("the second login after logout", second, 401)
}

// TestFailedLoginsHaveTheirExitCodes compares them, with what is said, with a file.
func TestFailedLoginsHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("ann", annsPassword)
	s.AddUser("new", "temporary password", func(u *users.User) { u.State = users.FirstAccess })
	h := newHome(t)
	var said transcript
	for _, k := range []struct {
		stdin string
		args  []string
	}{
		{"x", []string{"--user", "ann", "--password-stdin"}},
		{"x", []string{"nonsense", "--user", "ann", "--password-stdin"}},
		{"x", []string{s.Root, "--password-stdin"}},
		{"x", []string{s.Root, "--user", "ann"}}, // there is no terminal to ask on
		{"", []string{s.Root, "--user", "ann", "--password-stdin"}},
		{"x", []string{s.Root + "/v2", "--user", "ann", "--password-stdin"}},
		{"x", []string{"http://127.0.0.1:1", "--user", "ann", "--password-stdin"}},
		{"wrong", []string{s.Root, "--user", "ann", "--password-stdin"}},
		{"temporary password", []string{s.Root, "--user", "new", "--password-stdin"}},
	} {
		said.add(fmt.Sprint("login ", k.args), h.run(k.stdin, append([]string{"login"}, k.args...)...))
	}
	said.compare(t, "logins.txt", s.Root, "ROOT")
}

func TestPasswdChangesThePassword(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	s.AddUser("new", "temporary password", func(u *users.User) { u.State = users.FirstAccess })
	r := h.run("temporary password\none of my own\none of my own\n", "passwd", "--first", "--user", "new")
	if r.code != exitOK || !strings.Contains(r.err, "the password of new is changed") {
		t.Fatalf("first access: code %d: %s", r.code, r.err)
	}
	h.run("", "ls").want(t, exitOK)
	if r := h.run("temporary password\none\ntwo\n", "passwd", "--first", "--user", "new"); r.code == exitOK {
		t.Errorf("two different passwords: %s", r.err)
	}

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

func TestShellCompletionKnowsTheCommands(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	script := "ferry() { " + asFerry + "=1 " + os.Args[0] + " \"$@\"; }\n" + h.run("", "completion", "bash").out
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	for line, want := range map[string]string{
		"ferry u": "up uploads user", "ferry user di": "disable", "ferry up --me": "--message", "ferry completion f": "fish",
		"ferry up af": "", "ferry ls --b": "--backup", "ferry request ": "add ls rm set",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script+`
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ferry; printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd' '`, "bash")
		cmd.Args = append(cmd.Args, strings.Split(line, " ")...)
		cmd.Dir = h.dir
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q is completed to %q, %v, want %q", line, out, err, want)
		}
	}
	for shell, check := range map[string][]string{"zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}} {
		out := h.run("", "completion", shell)
		if out.code != exitOK || !strings.Contains(out.out, "ferry complete") {
			t.Errorf("%s: code %d: %s", shell, out.code, out.err)
		}
		if path, err := exec.LookPath(check[0]); err == nil {
			h.write("script", []byte(out.out))
			if text, err := exec.CommandContext(t.Context(), path, check[1], filepath.Join(h.dir, "script")).CombinedOutput(); err != nil {
				t.Errorf("%s does not take it: %s", shell, text)
			}
		}
	}
}

func TestLostBytesAreToldToThePersonWhoAsksForThem(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("a.txt", []byte("content"))
	link := h.up("a.txt")
	must(t, s.Data.Disk.Delete(t.Context(), blob.Files, s.Objects(blob.Files)[0]))
	for _, args := range [][]string{{"get", "a.txt"}, {"get", link}, {"get", link, "-o", "-"}} {
		r := h.run("", args...)
		wantSentence(t, r, exitDamaged, "the service has lost the bytes of this file; tell its operator the request id ")
		if id := strings.Fields(r.err); !strings.Contains(s.Log.String(), "id="+id[len(id)-1]+" ") {
			t.Errorf("%v: the log has no such request: %s", args, r.err)
		}
	}
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
	if r.code != exitPort || !strings.Contains(r.err, "\nferry: stopped, as the network failed: 4 of 5 files are left (--json names them)\n") ||
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
	for _, args := range []string{"site", "site --to bob", "photos/hello.txt hello.txt", "hello.txt photos/hello.txt --session"} {
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
