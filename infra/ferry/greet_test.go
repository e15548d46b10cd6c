package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandInTheGreetingWorks runs the command in a shell exactly as it is printed.
func TestCommandInTheGreetingWorks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	dir := filepath.Join(t.TempDir(), "it's a folder")
	s := serve(t, dir)
	line := regexp.MustCompile(`(?m)^\((?:it is not shown again; )?(.*) makes a new one\)`).FindStringSubmatch(s.greeting)
	if line == nil {
		t.Fatalf("the greeting is %s", s.greeting)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line[1])
	cmd.Env = append(os.Environ(), asFerry+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "temporary password: ") {
		t.Errorf("%s: %v\n%s", line[1], err, out)
	}
}

// TestCurlLinesInTheGreetingWork runs them in one folder, one after the other.
func TestCurlLinesInTheGreetingWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s, folder, link := serve(t, t.TempDir()), t.TempDir(), ""
	lines := regexp.MustCompile(`(?m)^  (?:echo|curl) .*$`).FindAllString(s.greeting, -1)
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "LINK", link, 1))
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if links := regexp.MustCompile(`http[^"]*`).FindAllString(string(out), 1); links != nil {
			link = links[0]
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "got", "hello.txt")); string(text) != "Hello, Ferry\n" || len(lines) != 4 {
		t.Errorf("%q, %v, %q", text, err, lines)
	}
}

// TestServeSaysAtTheStartWhatWillSurpriseLater counts the warnings: there is a line for each
// thing, and none without a reason.
func TestServeSaysAtTheStartWhatWillSurpriseLater(t *testing.T) {
	t.Parallel()
	const (
		plain, sender, loopback, proxy = "plain http", "FERRY_MAIL_FROM", "lead to this machine", "FERRY_TRUST_PROXY"
		smtp, sms, from                = "--smtp=smtp://127.0.0.1:1", "--sms-url=http://127.0.0.1:1", "--mail-from=files@example.com"
		proxied, good                  = "--trust-proxy", "--public-url=https://files.example.com/v1"
	)
	for _, k := range []struct{ args, want []string }{
		{nil, nil},
		{[]string{good}, []string{proxy}},
		{[]string{good, "--trust-proxy=false"}, []string{proxy}},
		{[]string{proxied, good, smtp, from}, nil},
		{[]string{proxied, "--public-url=http://files.example.com/v1"}, []string{plain}},
		{[]string{proxied, "--public-url=http://192.0.2.1:8080/v1", smtp}, []string{plain, sender}},
		{[]string{proxied, "--public-url=http://[::1]:8080/v1"}, nil},
		{[]string{smtp}, []string{sender, loopback}},
		{[]string{proxied, good, smtp, "--mail-from=root@localhost"}, []string{sender}},
		{[]string{proxied, "--public-url=https://localhost/v1", smtp, from}, []string{loopback}},
		{[]string{sms, "--sms-from=Ferry"}, []string{loopback}},
	} {
		t.Run(strings.Join(k.args, " "), func(t *testing.T) {
			t.Parallel()
			s := serve(t, t.TempDir(), append(k.args, "--log=text", "--no-demo")...)
			code, log := s.stop(t), s.errs.String()
			if code != exitOK || strings.Count(log, "level=WARN") != len(k.want) {
				t.Errorf("code %d: %s", code, log)
			}
			for _, want := range k.want {
				if !strings.Contains(log, want) {
					t.Errorf("no line has %q: %s", want, log)
				}
			}
		})
	}
}

// TestAnotherServerOnTheSameDataIsTold starts servers beside one that is then killed.
func TestAnotherServerOnTheSameDataIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside := func(public string) string {
		s := serve(t, dir, "--trust-proxy", "--public-url="+public, "--log=text", "--no-demo")
		s.stop(t)
		return s.errs.String()
	}
	const one, other = "https://one.example.com/v1", "https://other.example.com/v1"
	first := serve(t, dir, "--trust-proxy", "--public-url="+one)
	for public, want := range map[string]int{one: 0, other: 1} {
		log := beside(public)
		if strings.Count(log, "level=WARN") != want || want > 0 && !strings.Contains(log, "["+one+"]") {
			t.Errorf("a server for %s says %s", public, log)
		}
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if log := beside(other); strings.Contains(log, "level=WARN") {
		t.Errorf("beside nothing a server says %s", log)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "serving-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestServeSaysWhereMessagesGo(t *testing.T) {
	t.Parallel()
	const page, command = "/inbox\n", " inbox --data "
	for _, tt := range []struct {
		args         []string
		unsent, want string
		status       int // of the page
	}{
		{nil, "Mail and text messages are", page, 200},
		{[]string{"--trust-proxy"}, "Mail and text messages are", command, 404},
		{[]string{"--public-url=https://files.example.com/v1"}, "Mail and text messages are", command, 404},
		{[]string{"--inbox=off"}, "Mail and text messages are", command, 404},
		{[]string{"--trust-proxy", "--inbox=on"}, "Mail and text messages are", page, 200},
		{[]string{"--smtp=smtp://127.0.0.1:1"}, "\nText messages are", "FERRY_SMS_URL", 404},
		{[]string{"--smtp=smtp://127.0.0.1:1", "--inbox=on"}, "\nText messages are", page, 200},
		{[]string{"--sms-url=http://127.0.0.1:1", "--sms-from=Ferry"}, "\nE-mails are", page, 200},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			s := serve(t, t.TempDir(), append(tt.args, "--no-demo")...)
			if !strings.Contains(s.greeting, tt.unsent+" not sent: ") || !strings.Contains(s.greeting, tt.want) {
				t.Errorf("the greeting is %s", s.greeting)
			}
			resp, err := http.Get("http://" + s.addr + "/inbox")
			must(t, err)
			resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("the inbox gets %d", resp.StatusCode)
			}
		})
	}
}

func TestDemoIsOnlyForAPrivateService(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		args []string
		demo bool
	}{
		{nil, true},
		{[]string{"--public-url=https://files.example.com/v1"}, false},
		{[]string{"--trust-proxy"}, false},
		{[]string{"--client-header=X-Real-IP", "--proxy-secret=X-Proxy:" + strings.Repeat("0f", 32)}, false},
		{[]string{"--no-demo"}, false},
	} {
		s := serve(t, t.TempDir(), k.args...)
		if (s.password != "") != k.demo || strings.Contains(s.greeting, "There are no users yet") == k.demo {
			t.Errorf("%v: %s", k.args, s.greeting)
		}
	}
}

// TestPasswordOfDemoReachesNoLog starts a service whose output goes to files, as with
// systemd or in a container.
func TestPasswordOfDemoReachesNoLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--log", "json")
	if code := s.stop(t); code != exitOK || len(s.password) < 16 {
		t.Fatalf("code %d, the password is %q", code, s.password)
	}
	if strings.Contains(s.greeting+s.errs.String(), s.password) {
		t.Error("the password is in the output")
	}
	if s := serve(t, dir); s.password != "" {
		t.Error("the second start makes another user")
	}
	if info, err := os.Stat(filepath.Join(dir, "demo.password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the password: %v, %v", info, err)
	}
}
