package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"ferry/shared/boot/apitest"
)

// evil ends a line, sets a title, changes colours in two ways, and turns text around.
const evil = "\nFORGED\r\x1b]0;title\a\u009b31m\x7f\u202e"

// poison adds evil to all texts in an answer, but times and the login.
func poison(v any) any {
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return v + evil
		}
	case []any:
		for i := range v {
			v[i] = poison(v[i])
		}
	case map[string]any:
		for name, value := range v {
			if name != "bearer" {
				v[name] = poison(value)
			}
		}
	}
	return v
}

// hostile stands before a service and poisons its answers, or refuses everything.
func hostile(t *testing.T, root string, refuses bool) string {
	to, err := url.Parse(root)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.URL.Path == "/v1/download/file" && !refuses {
			resp.Header.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape("a"+evil))
			return nil
		}
		text, err := io.ReadAll(resp.Body)
		var answer any
		if json.Unmarshal(text, &answer) == nil {
			text, _ = json.Marshal(poison(answer))
		}
		if refuses {
			resp.StatusCode = http.StatusBadRequest
			text, _ = json.Marshal(poison(map[string]any{"description": "no"}))
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		resp.Header.Del("Content-Length")
		return err
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// TestNoServiceControlsATerminal runs each command that asks a service.
func TestNoServiceControlsATerminal(t *testing.T) {
	t.Parallel()
	s, ann := annsService(t)
	ann.write("a.txt", []byte("content"))
	ann.write("tree/b.txt", []byte("content"))
	for range 3 {
		ann.run("", "up", "a.txt", "-q", "--mail", "bob@example.com").want(t, exitOK)
	}
	link := strings.TrimSpace(ann.run("", "up", "a.txt", "-q").out)
	request := ann.request("--title", "Photos")
	apitest.Caller{
		Server: s,
		Name:   "ann",
		Bearer: s.Login("ann", annsPassword),
	}.Ask("POST /uploads", `{"name":"big.bin","length":9000000}`).Want(201)
	calls := map[string]string{
		"login": "login --user ann", "up": "up a.txt tree --each --qr", "ls": "ls --links", "ls -l": "ls -l", "ls --json": "ls --json",
		"show": "show 1", "get": "get LINK -o got/ -f", "get by id": "get 1 -o got/", "share": "share 1 --mail carla@example.com", "set": "set 1 --name b.txt",
		"uploads": "uploads", "uploads --abort": "uploads --abort x", "rm": "rm 2", "restore": "restore 2", "me": "me", "passwd": "passwd --first", "health": "health",
		"link ls": "link ls 1", "link set": "link set 1 own --downloads 5", "link renew": "link renew 1", "link rm": "link rm 3 own",
		"request add": "request add --title x", "request ls": "request ls", "request set": "request set ID --title x", "request rm": "request rm x",
		"token add": "token add x", "token list": "token list", "token rm": "token rm x", "guest": "up a.txt --request REQUEST", "logout": "logout",
	}
	for _, n := range walk(kong.Must(&commands{}, vars()).Model.Node) {
		if asks := n.Group != nil && n.Group.Key == "Files:" && len(n.Children) == 0; asks && calls[n.Path()] == "" {
			t.Errorf("ferry %s is not tried", n.Path())
		}
	}
	for _, refuses := range []bool{false, true} {
		root := hostile(t, s.Root, refuses)
		fill := strings.NewReplacer(
			"LINK",
			strings.Replace(link, s.Root, root, 1),
			"REQUEST",
			strings.Replace(request, s.Root, root, 1),
		)
		hurt := false
		for name, args := range calls {
			h := newHome(t, "FERRY_URL="+root, "FERRY_USER=ann", "FERRY_PASSWORD="+annsPassword)
			h.write("a.txt", []byte("content"))
			h.write("tree/b.txt", []byte("content"))
			r := h.run("", strings.Fields(fill.Replace(args))...)
			said := r.out + r.err
			hurt = hurt || strings.Contains(said, "\uFFFD")
			bad := strings.ContainsFunc(said, func(r rune) bool {
				return (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && r != '\n'
			})
			if said == "" || bad || strings.Contains("\n"+said, "\nFORGED") {
				t.Errorf("%s, refused %v: code %d\n%q", name, refuses, r.code, said)
			}
		}
		if !hurt {
			t.Errorf("refused %v: nothing evil was answered", refuses)
		}
	}
}

// TestNothingIsPrintedBesideTheScreens looks for other ways to the terminal in the code.
func TestNothingIsPrintedBesideTheScreens(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	parts, err := filepath.Glob("*/*.go")
	must(t, err)
	for _, file := range append(files, parts...) {
		text, err := os.ReadFile(file)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			beside := regexp.MustCompile(`os\.Std(out|err)|\bfmt\.Print|\bprintln?\(`).MatchString(line)
			if beside && !strings.Contains(line, "creen{Raw: os.") && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}
