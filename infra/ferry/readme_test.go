package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsInTheREADMEWork runs the lines that a page shows, one shell for
// all blocks of a page, against a service that starts as the README says.
func TestCommandsInTheREADMEWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	for _, page := range []struct {
		name   string
		blocks int
		wants  map[string]int
	}{
		{name: "README.md", blocks: 2, wants: map[string]int{
			"\nhttp://": 1, `"name":"hello.txt"`: 3, `"status":0`: 3,
			"logged in to ": 1, "hello.txt: 13 B": 1, "copy.txt: 13 B": 1, "verified by sha-256 and crc64nvme": 1,
		}},
		{name: "shared/api/README.md", blocks: 6, wants: map[string]int{
			`"name":"hello.txt"`: 8, `"name":"raw.txt"`: 1, "Hello, Ferry": 3, `"path":"texts/hello.txt"`: 1, `"protected":true`: 2, `"state":"ended"`: 1, "handlerAuthForget:succsessfully": 1,
			"handlerAuthLogin:succsessfully": 1, `"bearer":`: 1, `"status":0`: 9,
			`"title":"Photos of the trip"`: 2, `{"files":[{"name":"hello.txt","length":13}`: 2, // a request
			`"state":"open"`: 1, `"number":2,"size":757120`: 1, `"name":"big.bin"`: 2, // the session
		}},
		{name: "infra/ferry/README.md", blocks: 1, wants: map[string]int{
			"logged in to ": 1, "copy.img: 30.0 MB": 1, "verified by crc64nvme": 1, "is restored": 1, "pictures: 2 files from photos.zip": 1,
			`"name": "disk.img"`: 1, "logged out of ": 1,
		}},
	} {
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			out := runLines(t, page.name, page.blocks)
			for what, want := range page.wants {
				if got := strings.Count(out, what); got < want {
					t.Errorf("%s was answered %d times, want %d or more:\n%s", what, got, want, out)
				}
			}
			if strings.Contains(out, `"status":4`) {
				t.Errorf("a line was answered with an error:\n%s", out)
			}
		})
	}
}

// runLines starts a service and runs the page's blocks of lines.
func runLines(t *testing.T, page string, want int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	must(t, err)
	blocks := regexp.MustCompile("(?s)<!-- A test runs the lines[^>]*-->\n```sh\n(.*?)```").
		FindAllStringSubmatch(string(text), -1)
	if len(blocks) != want {
		t.Fatalf("the page has %d blocks to run, want %d", len(blocks), want)
	}
	s := serve(t, t.TempDir())
	script := "set -eu -o pipefail\n"
	for _, b := range blocks {
		script += b[1]
	}
	root := "http://" + s.addr
	script = strings.NewReplacer("demo:PASSWORD", "demo:"+s.password, "http://127.0.0.1:8080", root).Replace(script)
	h := newHome(t, "FERRY_PASSWORD="+s.password, "TMPDIR="+t.TempDir())
	must(t, os.Mkdir(filepath.Join(h.dir, "bin"), 0o700))
	must(t, os.Symlink(os.Args[0], filepath.Join(h.dir, "bin", "ferry")))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = h.dir, append(h.command("").Env, h.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the lines failed: %v\n%s", err, out)
	}
	left, err := os.ReadDir(h.dir)
	must(t, err)
	for _, e := range left {
		if !slices.Contains([]string{"bin", "cache", "config"}, e.Name()) {
			t.Errorf("the lines leave %s in the folder where they are run", e.Name())
		}
	}
	return string(out)
}

// TestLinksInThePagesLeadSomewhere looks at the links between pages: the file
// must be there, and so must the heading.
func TestLinksInThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		must(t, err)
		pages = append(pages, found...)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, err := url.Parse(m[1])
			if err != nil || to.Host == "" && !leads(page, to) {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// leads reports whether there is such a file, with such a heading.
func leads(from string, to *url.URL) bool {
	path := from
	if to.Path != "" {
		path = filepath.Join(filepath.Dir(from), to.Path)
	}
	text, err := os.ReadFile(path)
	if err != nil || to.Fragment == "" {
		return err == nil
	}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		kept := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(h[1]), "")
		if strings.ReplaceAll(kept, " ", "-") == to.Fragment {
			return true
		}
	}
	return false
}
