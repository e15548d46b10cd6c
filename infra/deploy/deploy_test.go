package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ferry/shared/web/browsertest"
)

const password = "a long password"

// built builds ferry once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ferry")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+"/ferry", "ferry/infra/ferry")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in a release
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building ferry: %w: %s", err, out)
	}
	return dir + "/ferry", err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func program(t *testing.T) string {
	t.Helper()
	p, err := built()
	check(t, err)
	return p
}

// tool returns a program's path, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	check(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	check(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// replaced returns text with each old part, which it must have, replaced.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q in\n%s", pairs[i], text)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}

// start starts a program that ends with the test, and returns what it prints, in a file.
func start(t *testing.T, env []string, name string, args ...string) (out string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	check(t, err)
	defer f.Close()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	return f.Name()
}

// until waits for something that another process does.
func until(t *testing.T, what string, done func() bool, out ...string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	for _, name := range out {
		t.Log(read(t, name))
	}
	t.Fatalf("%s has not happened", what)
}

// serve starts ferry serve on the data in dir, with the user ann, and waits until ferry
// health finds it. It returns what it logs.
func serve(t *testing.T, dir string, env ...string) (out string) {
	t.Helper()
	env = append(env, "FERRY_DATA="+dir)
	out = start(t, env, program(t), "serve", "--no-demo")
	until(t, "the start of ferry", func() bool { return run(t, env, "", "health") == nil }, out)
	check(t, run(t, env, password+"\n", "user", "add", "ann", "--active", "--password-stdin"))
	return out
}

func run(t *testing.T, env []string, stdin string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(stdin)
	return cmd.Run()
}

func TestTheSystemdUnitIsValidAndHardened(t *testing.T) {
	t.Parallel()
	analyze, text := tool(t, "systemd-analyze"), read(t, "ferry.service")
	secrets := strings.NewReplacer("#LoadCredential", "LoadCredential", "#Environment", "Environment").Replace(text)
	for name, text := range map[string]string{"as it is": text, "with secrets": secrets} {
		unit := write(
			t,
			filepath.Join(t.TempDir(), "ferry.service"),
			replaced(t, text, "/usr/local/bin/ferry", "/bin/true"),
		)
		if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil ||
			strings.Contains(string(out), "ferry.service") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		// The scale ends at 10 (unsafe); 20 here is 2.0.
		if out, err := exec.Command(
			analyze,
			"security",
			"--offline=true",
			"--threshold=20",
			unit,
		).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestTheUnitsSecretsComeFromFiles(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`#Environment=(\S+_FILE)=%d/smtp-url`).FindStringSubmatch(read(t, "ferry.service"))
	if name == nil {
		t.Fatal("the unit shows no secret in a file")
	}
	file := write(t, filepath.Join(t.TempDir(), "smtp-url"), "no-url-of-a-server\n")
	for path, says := range map[string]string{file: "FERRY_SMTP_URL:", file + ".missing": name[1]} {
		cmd := exec.CommandContext(t.Context(), program(t), "serve")
		cmd.Env = append(os.Environ(), "FERRY_ADDR=127.0.0.1:0", "FERRY_DATA="+t.TempDir(), name[1]+"="+path)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, %s", path, err, out)
		}
	}
}

// TestAnImageIsBuiltFromTheReleaseAlone, whichever of Docker's builders is used: the
// checkout may hold data and keys.
func TestAnImageIsBuiltFromTheReleaseAlone(t *testing.T) {
	t.Parallel()
	lines := regexp.MustCompile(`(?m)^[^#\n]+`).FindAllString(read(t, "../../.dockerignore"), -1)
	if strings.Join(lines, " ") != "* !bin/release" {
		t.Errorf(".dockerignore is %q", lines)
	}
}

// docker returns a function that runs docker and returns what it prints, or skips the test.
func docker(t *testing.T) func(args ...string) string {
	t.Helper()
	path := tool(t, "docker")
	if err := exec.Command(path, "info").Run(); err != nil {
		t.Skip("no Docker daemon answers")
	}
	return func(args ...string) string {
		t.Helper()
		var errs bytes.Buffer
		cmd := exec.Command(path, args...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(password+"\n"), &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("docker %v: %v\n%s", args, err, &errs)
		}
		return strings.TrimSpace(string(out))
	}
}

// based returns a base image or, if it cannot be had, a stand-in of its own: the files of it that ferry needs.
func based(t *testing.T, docker func(...string) string, image string) string {
	t.Helper()
	if exec.Command("docker", "image", "inspect", image).Run() == nil ||
		exec.Command("docker", "pull", "-q", image).Run() == nil {
		return image
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	certificates, _ := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	for _, f := range []struct {
		tar.Header
		content string
	}{
		{tar.Header{Name: "tmp/", Mode: 0o1777}, ""},
		{tar.Header{Name: "home/nonroot/", Mode: 0o700, Uid: 65532, Gid: 65532}, ""},
		{tar.Header{Name: "etc/passwd", Mode: 0o644}, "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"},
		{tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, string(certificates)},
	} {
		f.Size = int64(len(f.content))
		check(t, w.WriteHeader(&f.Header))
		_, err := io.WriteString(w, f.content)
		check(t, err)
	}
	check(t, w.Close())
	standIn := "ferry-base-" + strings.ToLower(rand.Text())
	docker("import", write(t, t.TempDir()+"/base.tar", files.String()), standIn)
	t.Cleanup(func() { docker("rmi", standIn) })
	return standIn
}

func TestTheImageServes(t *testing.T) {
	t.Parallel()
	docker, text, root := docker(t), read(t, "Dockerfile"), t.TempDir()
	browsertest.Alone(t)
	from := regexp.MustCompile(`(?m)^FROM (\S+) AS base$`).FindStringSubmatch(text)[1]
	file := write(t, root+"/Dockerfile", strings.Replace(text, from, based(t, docker, from), 1))
	check(t, os.MkdirAll(root+"/bin/release", 0o755))
	check(t, os.Link(program(t), root+"/bin/release/ferry-linux-"+runtime.GOARCH))
	// Its label makes it another image than that of a test beside this one, which is removed while this one runs.
	image := docker(
		"build",
		"-q",
		"--label",
		"test="+rand.Text(),
		"--build-arg",
		"ARCH="+runtime.GOARCH,
		"-f",
		file,
		root,
	)
	t.Cleanup(func() { docker("rmi", "-f", image) })

	id := docker(
		"run",
		"-d",
		"-p",
		"127.0.0.1:0:8080",
		"-v",
		"/data",
		"--read-only",
		"--cap-drop=ALL",
		"--health-interval=1s",
		"-e",
		"FERRY_PUBLIC_URL=https://files.example.com/v1",
		"-e",
		"FERRY_TRUST_PROXY=true",
		image,
	)
	t.Cleanup(func() { docker("rm", "-f", "-v", id) })
	healthy := func() (base string) {
		until(t, "health", func() bool { return docker("inspect", "-f", "{{.State.Health.Status}}", id) == "healthy" })
		return "http://" + docker("port", id, "8080/tcp") + "/v1"
	}
	stop := func() {
		docker("stop", "-t", "40", id)
		if code := docker("inspect", "-f", "{{.State.ExitCode}}", id); code != "0" {
			t.Errorf("it ends with %s: %s", code, docker("logs", id))
		}
	}
	base := healthy()
	if who := strings.Fields(docker("top", id, "-eo", "pid,uid,gid")); len(who) != 6 ||
		who[4] != "65532" ||
		who[5] != "65532" {
		t.Errorf("it runs as %v", who)
	}
	docker("exec", "-i", id, "/ferry", "user", "add", "ann", "--active", "--password-stdin")
	link, err := upload(t.Context(), http.DefaultClient, base, bytes.NewReader(content))
	check(t, err)
	download(t, http.DefaultClient, strings.Replace(link, "https://files.example.com/v1", base, 1))
	stop()
	docker("start", id)
	download(t, http.DefaultClient, strings.Replace(link, "https://files.example.com/v1", healthy(), 1))
	stop()
}

// TestFail2banReadsARefusedLogin runs the filter on lines that ferry has really logged.
func TestFail2banReadsARefusedLogin(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	out := serve(t, t.TempDir(), "FERRY_ADDR="+addr, "FERRY_TRUST_PROXY=true")
	forged := url.PathEscape("\n" +
		`{"time":"","level":"WARN","msg":"login refused","address":"192.0.2.1","login":"basic"`)
	for path, authorization := range map[string]string{
		"/v1/download/list": "Basic YW5uOndyb25n", "/v1/files/1": "Bearer invented", "/v1/" + forged: "Basic YW5uOndyb25n", // ann:wrong
	} {
		req, err := http.NewRequest("GET", "http://"+addr+path, nil)
		check(t, err)
		req.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.7")
		req.Header.Set("Authorization", authorization)
		resp, err := http.DefaultClient.Do(req)
		check(t, err)
		resp.Body.Close()
	}
	until(t, "the log of all", func() bool { return strings.Count(read(t, out), `"address":"203.0.113.7"`) >= 5 }, out)
	log := read(t, out)
	for _, before := range []string{"", "host ferry[12]: "} { // as in a file, and as in the journal
		lines := write(t, t.TempDir()+"/log", before+strings.ReplaceAll(strings.TrimSpace(log), "\n", "\n"+before)+"\n")
		found, err := exec.Command(
			tool(t, "fail2ban-regex"),
			"-o",
			"ip",
			lines,
			"fail2ban/filter.conf",
		).CombinedOutput()
		if err != nil || string(found) != "203.0.113.7\n" {
			t.Errorf("the filter finds %s, %v in\n%s", found, err, log)
		}
	}
}

// TestAReleaseIsTheSameInEachCheckout builds the same commit in two folders.
func TestAReleaseIsTheSameInEachCheckout(t *testing.T) {
	t.Parallel()
	git, sums := tool(t, "git"), []string{}
	tool(t, "make")
	if err := exec.Command(git, "-C", "../..", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("this is no checkout")
	}
	root, err := filepath.Abs("../..")
	check(t, err)
	for _, name := range []string{"one", "another"} {
		dir := filepath.Join(t.TempDir(), name)
		for _, args := range [][]string{
			{git, "clone", "-q", root, dir}, {"make", "-s", "-C", dir, "release", "PLATFORMS=linux/amd64"},
		} {
			if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		sums = append(sums, read(t, dir+"/bin/release/SHA256SUMS"))
		out, err := exec.Command(dir+"/bin/release/ferry-linux-amd64", "version").Output()
		commit, _ := exec.Command(git, "-C", dir, "rev-parse", "HEAD").Output()
		if err != nil ||
			!strings.Contains(string(out), "commit "+strings.TrimSpace(string(commit))+",") ||
			strings.Contains(string(out), "unknown") {
			t.Errorf("ferry version prints %s, %v", out, err)
		}
	}
	if sums[0] != sums[1] || !strings.Contains(sums[0], "  ferry-linux-amd64") {
		t.Errorf("the releases differ: %v", sums)
	}
}

// upload sends a body of unknown length as ann, and returns the link.
func upload(ctx context.Context, client *http.Client, base string, body io.Reader) (link string, err error) {
	req, err := http.NewRequestWithContext(ctx, "PUT", base+"/upload?file=x", body)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("ann", password)
	req.Header.Set("X-Forwarded-For", "203.0.113.9") // nobody may choose an address
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Files []struct{ LinkURL string } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Files) == 0 {
		return "", fmt.Errorf("the answer %s has no link: %v", resp.Status, err)
	}
	return answer.Files[0].LinkURL, nil
}

// download gets what upload has sent.
func download(t *testing.T, client *http.Client, link string) {
	t.Helper()
	resp, err := client.Get(link)
	check(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s, %d bytes, %v", resp.Status, len(got), err)
	}
}

var content = bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // 32 MiB
