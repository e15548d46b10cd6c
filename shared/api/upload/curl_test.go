package upload_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/boot/local"
)

// curl runs the real program and returns the answer, which must be a success.
func (c uploadCaller) curl(args ...string) apitest.Envelope {
	c.Helper()
	e := c.tryCurl(args...)
	if e.Status != 0 || len(e.Files) == 0 {
		c.Fatalf("curl printed %+v", e)
	}
	return e
}

// tryCurl runs the real program and returns the answer.
func (c uploadCaller) tryCurl(args ...string) apitest.Envelope {
	c.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		c.Skip("curl is not installed")
	}
	args = append([]string{"-sS", "--noproxy", "*", "--max-time", "20", "-u", c.name + ":" + c.password}, args...)
	cmd := exec.CommandContext(c.Context(), path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		c.Fatalf("curl: %v: %s", err, errs.String())
	}
	var e apitest.Envelope
	if err := json.Unmarshal(out.Bytes(), &e); err != nil {
		c.Fatalf("curl printed %s (%v)", out.String(), err)
	}
	return e
}

func TestCurlSeesTheRefusal(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.MaxBody = 1 << 20 })
	path := tempFile(t, "large.bin", strings.Repeat("0123456789abcdef", 1<<20))
	for _, k := range []struct {
		what     string
		password string
		status   int
	}{
		{"a wrong password", "not the password", 401},
		{"a file too large", c.password, 413},
	} {
		for how, args := range map[string][]string{
			"asking first":              {"-H", "Expect: 100-continue", "-F", "file=@" + path, c.Base + "/upload"},
			"without asking":            {"-H", "Expect:", "-F", "file=@" + path, c.Base + "/upload"},
			"in chunks":                 {"-H", "Transfer-Encoding: chunked", "-F", "file=@" + path, c.Base + "/upload"},
			"in chunks, without asking": {"-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-T", path, c.Base + "/upload?file=x"},
		} {
			if e := c.tryCurl(append([]string{"-u", c.name + ":" + k.password}, args...)...); e.Status != k.status {
				t.Errorf("%s, %s: the answer is %+v, want %d", k.what, how, e, k.status)
			}
		}
	}
	c.wantNothing("refused files")
}

func TestCurlUploadsAFile(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	small := strings.Repeat("small ", 100)
	large := strings.Repeat("0123456789abcdef", 3<<16) // curl asks before it sends more than 1 MiB
	for _, k := range []struct {
		what, content string
		args          func(path string) []string
	}{
		{"a small form", small, func(p string) []string { return []string{"-F", "file=@" + p, c.Base + "/upload"} }},
		{"a large form", large, func(p string) []string { return []string{"-F", "file=@" + p, c.Base + "/upload"} }},
		{"a form that asks first", small, func(p string) []string {
			return []string{"-H", "Expect: 100-continue", "-F", "file=@" + p, c.Base + "/upload"}
		}},
		{"a large form that does not ask first", large, func(p string) []string {
			return []string{"-H", "Expect:", "-F", "file=@" + p, c.Base + "/upload"}
		}},
		{"a form in chunks", large, func(p string) []string {
			return []string{"-H", "Transfer-Encoding: chunked", "-F", "file=@" + p, c.Base + "/upload"}
		}},
		{"a form in chunks that does not ask first", large, func(p string) []string {
			return []string{"-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-F", "file=@" + p, c.Base + "/upload"}
		}},
		{"a form with another field name", small, func(p string) []string { return []string{"-F", "document=@" + p, c.Base + "/upload"} }},
		{"a form with a name in the query", small, func(p string) []string {
			return []string{"-F", "file=@" + p, c.Base + "/upload?file=sent.bin"}
		}},
		{"-T", large, func(p string) []string { return []string{"-T", p, c.Base + "/upload?file=sent.bin"} }},
		{"-T in chunks", large, func(p string) []string {
			return []string{"-H", "Transfer-Encoding: chunked", "-T", p, c.Base + "/upload?file=sent.bin"}
		}},
		{"-T as a POST", small, func(p string) []string {
			return []string{"-X", "POST", "-T", p, c.Base + "/upload?file=sent.bin"}
		}},
		{"--data-binary", large, func(p string) []string {
			return []string{"--data-binary", "@" + p, c.Base + "/upload?file=sent.bin"}
		}},
		{"--data-binary with a type", small, func(p string) []string {
			return []string{"-H", "Content-Type: application/pdf", "--data-binary", "@" + p, c.Base + "/upload?file=sent.bin"}
		}},
	} {
		e := c.curl(k.args(tempFile(t, "sent.bin", k.content))...)
		f := e.Files[0]
		if f.Name != "sent.bin" || f.Length != int64(len(k.content)) {
			t.Errorf("%s: stored as %q with %d bytes, want %d", k.what, f.Name, f.Length, len(k.content))
		}
		if c.get(f.LinkURL) != k.content {
			t.Errorf("%s: the bytes that came back are wrong", k.what)
		}
	}
}

func TestCurlUploadsSeveralFilesAtOnce(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	c.curl("-F", "file=@"+tempFile(t, "one", "1"), "-F", "file=@"+tempFile(t, "two", "22"), "-F", "comment=none", c.Base+"/upload")
	if got := c.names(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("there are %q", got)
	}
}

func TestCurlsFileNamesAreKept(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	long := strings.Repeat("n", 300)
	for _, k := range []struct{ what, name, want string }{
		{"spaces", "two  words.txt", "two  words.txt"},
		{"quotes", `the "best" one's.txt`, `the "best" one's.txt`},
		{"emoji", "🎉 fête 写真.txt", "🎉 fête 写真.txt"},
		{"semicolons and commas", "a;b,c=d.txt", "a;b,c=d.txt"},
		{"percent signs", "100%.txt", "100%.txt"},
		{"an escaped quote", "a%22b.txt", `a"b.txt`}, // curl also sends this for a quote
		{"another escape", "a%41b+c.txt", "a%41b+c.txt"},
		{"parent folders", "../../etc/passwd", "passwd"},
		{"only parent folders", "../..", "file"},
		{"a Windows path", `C:\Users\ann\report.pdf`, "report.pdf"},
		{"a Windows share", `\\server\share\report.pdf`, "report.pdf"},
		{"300 bytes", long + ".pdf", long[:251] + ".pdf"},
		{"a line end", "a\r\nb.txt", "ab.txt"},
	} {
		// In curl's syntax a backslash escapes characters in quotes.
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(k.name)
		path := tempFile(t, "sent", k.name)
		for _, escape := range [][]string{nil, {"--form-escape"}} {
			if escape != nil && strings.ContainsAny(k.name, "\r\n") {
				continue // curl would send them as they are
			}
			e := c.curl(append(escape, "-F", "file=@"+path+`;filename="`+quoted+`"`, c.Base+"/upload")...)
			if got := e.Files[0].Name; got != k.want {
				t.Errorf("%s %v: %q is stored as %q, want %q", k.what, escape, k.name, got, k.want)
			}
			if got := c.get(e.Files[0].LinkURL); got != k.name {
				t.Errorf("%s: %q came back", k.what, got)
			}
		}
	}
}

func TestCurlUploadsFilesWithOddNames(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	for _, name := range []string{`it's "this" 🎉.txt`, "with space", ".hidden", "trailing.dot.", "-dash"} {
		path := tempFile(t, name, "content")
		e := c.curl("-F", `file=@"`+strings.ReplaceAll(path, `"`, `\"`)+`"`, c.Base+"/upload")
		if got := e.Files[0].Name; got != name {
			t.Errorf("%q is stored as %q", name, got)
		}
	}
}
