package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClientsDoAsTheirPageSays runs each block of the page as the program that it is for. It must print the link,
// and the bytes that the link gives.
func TestClientsDoAsTheirPageSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../shared/api/CLIENTS.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)<!-- A test runs this: ([^>]*?) -->\n```(\\w+)\n(.*?)```").
		FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 7 {
		t.Fatalf("the page has %d blocks to run", len(blocks))
	}
	packages, err := filepath.Abs("../../.tmp/clients/node_modules")
	must(t, err)
	s := serve(t, t.TempDir())
	for _, block := range blocks {
		needs, language, lines := block[1], block[2], block[3]
		t.Run(needs, func(t *testing.T) {
			t.Parallel()
			program, module, _ := strings.Cut(needs, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			if _, err := os.Stat(filepath.Join(packages, module)); program == "node" && err != nil {
				t.Skipf("%s is not installed: make clients", module)
			}
			if program == "python3" && exec.CommandContext(t.Context(), program, "-c", "import "+module).Run() != nil {
				t.Skipf("the Python module %s is not installed: pip install -r infra/ci/requirements.txt", module)
			}
			run := map[string][]string{
				"sh": {
					"bash", "-eu", "block",
				}, "js": {"node", "block.mjs"}, "python": {"python3", "block"}, "java": {"java", "block.java"},
			}[language]
			dir := t.TempDir()
			lines := strings.NewReplacer("http://127.0.0.1:8080/v1", s.base, "PASSWORD", s.password).Replace(lines)
			must(t, os.WriteFile(filepath.Join(dir, run[len(run)-1]), []byte(lines), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("Hello, Ferry"), 0o600))
			must(t, os.Symlink(packages, filepath.Join(dir, "node_modules")))
			cmd := exec.CommandContext(t.Context(), run[0], run[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "no_proxy=*", "NO_PROXY=*")
			out, err := cmd.CombinedOutput()
			if err != nil ||
				!strings.Contains(string(out), s.base+"/download/file?lang=en&k=") ||
				!strings.HasSuffix(strings.TrimSpace(string(out)), "Hello, Ferry") {
				t.Errorf("it printed %s: %v", out, err)
			}
		})
	}
}

// TestShareXUploadsByItsSettings plays the settings of the page as ShareX does.
func TestShareXUploadsByItsSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../shared/api/CLIENTS.md")
	must(t, err)
	s := serve(t, t.TempDir())
	block := regexp.MustCompile("(?s)<!-- A test plays this. -->\n```json\n(.*?)```").
		FindStringSubmatch(string(text))[1]
	var sxcu struct {
		RequestMethod, RequestURL, Body, FileFormName, URL, ErrorMessage string
		Headers                                                          map[string]string
	}
	text = []byte(strings.NewReplacer("http://127.0.0.1:8080/v1", s.base, "PASSWORD", s.password).Replace(block))
	must(t, json.Unmarshal(text, &sxcu))
	const boundary = "--------------------8dc4f0a1b2c3d4e"
	body := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" +
		sxcu.FileFormName + "\"; filename=\"Bild ü.png\"\r\n" +
		"Content-Type: image/png\r\n\r\nHello, Ferry\r\n--" + boundary + "--\r\n"
	r, err := http.NewRequestWithContext(t.Context(), sxcu.RequestMethod, sxcu.RequestURL, strings.NewReader(body))
	must(t, err)
	for name, value := range sxcu.Headers {
		if plain, ok := strings.CutPrefix(value, "Basic {base64:"); ok {
			value = "Basic " + base64.StdEncoding.EncodeToString([]byte(strings.TrimSuffix(plain, "}")))
		}
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	r.Header.Set("User-Agent", "ShareX/16.1.0")
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	must(t, err)
	pattern := strings.TrimSuffix(strings.TrimPrefix(sxcu.URL, "{regex:"), "}")
	got, err := http.Get(regexp.MustCompile(pattern).FindString(string(said)))
	must(t, err)
	defer got.Body.Close()
	bytes, err := io.ReadAll(got.Body)
	if err != nil ||
		string(bytes) != "Hello, Ferry" ||
		!strings.Contains(got.Header.Get("Content-Disposition"), "Bild%20%C3%BC.png") {
		t.Errorf("ShareX gets %s, whose link gives %s as %v: %v", said, bytes, got.Header, err)
	}
}
