package upload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// curl runs the real program, which must print an envelope with a file.
func (c caller) curl(args ...string) (f apitest.File) {
	c.Helper()
	var e apitest.Envelope
	if text := c.curlPrints(args...); json.Unmarshal([]byte(text), &e) != nil || e.Status != 0 || len(e.Files) == 0 {
		c.Fatalf("curl printed %s", text)
	}
	return e.Files[0]
}

// curlPrints runs the real program and returns what it printed.
func (c caller) curlPrints(args ...string) string {
	c.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		c.Skip("curl is not installed")
	}
	args = append([]string{"-sS", "--noproxy", "*", "--max-time", "20", "-u", c.Name + ":" + apitest.Password}, args...)
	cmd := exec.CommandContext(c.Context(), path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		c.Fatalf("curl: %v: %s", err, errs.String())
	}
	return out.String()
}

// TestCurlUploadsToAFolderOrAName uploads as with transfer.sh.
func TestCurlUploadsToAFolderOrAName(t *testing.T) {
	t.Parallel()
	c := begin(t)
	sent := tempFile(t, "Über 50% #1?.txt", "content")
	stored := 0
	for _, k := range []struct{ to, name string }{
		{"/upload/", "Über 50% #1?.txt"},
		{"/upload/other.txt", "other.txt"},
		{"/upload/?file=asked.txt", "asked.txt"},
		{"/upload/other.txt?file=asked.txt", "asked.txt"},
		{"/upload/a%20b%2Fc%22.txt", `c".txt`},
		{"/upload/%2B1+2.txt", "+1+2.txt"},
	} {
		if c.InStack() && strings.Contains(k.to, "%2F") {
			continue // a gateway may take it for the end of a segment
		}
		stored++
		if f := c.curl("-T", sent, c.Base+k.to); f.Name != k.name || c.Get(f.LinkURL) != "content" {
			t.Errorf("-T to %s: the file is %+v, want %s", k.to, f, k.name)
		}
	}
	for path, status := range map[string]int{
		"/upload/":       404,
		"/upload/%2E%2E": 400,
		"/upload/%00":    400,
		"/upload/a/b":    404,
	} {
		if c.InStack() && strings.Contains(path, "%") {
			continue // the gateway refuses it
		}
		c.Ask("PUT "+path, "content").Want(status)
	}
	expect.Equal(t, "files", len(c.names()), stored)
}

func TestCurlUploadsAFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	small := strings.Repeat("small ", 100)
	large := strings.Repeat("0123456789abcdef", 3<<16) // curl asks before it sends more than 1 MiB
	chunked := []string{"-H", "Transfer-Encoding: chunked"}
	for what, k := range map[string]struct {
		content string
		headers []string
		how     string // FILE stands for the file's path
		query   string
	}{
		"a small form": {content: small, how: "-F file=@FILE"},
		"a large form": {content: large, how: "-F file=@FILE"},
		"a large form that does not ask first": {
			content: large,
			headers: []string{"-H", "Expect:"},
			how:     "-F file=@FILE",
		},
		"a form in chunks": {content: large, headers: chunked, how: "-F file=@FILE"},
		"-T":               {content: large, how: "-T FILE", query: "?file=sent.bin"},
		"-T in chunks":     {content: large, headers: chunked, how: "-T FILE", query: "?file=sent.bin"},
		"--data-binary":    {content: large, how: "--data-binary @FILE", query: "?file=sent.bin"},
	} {
		how := strings.Fields(strings.Replace(k.how, "FILE", tempFile(t, "sent.bin", k.content), 1))
		f := c.curl(append(append(slices.Clone(k.headers), how...), c.Base+"/upload"+k.query)...)
		if f.Name != "sent.bin" || f.Length != int64(len(k.content)) || c.Get(f.LinkURL) != k.content {
			t.Errorf("%s: stored as %q with %d bytes, want %d, or other bytes came back",
				what, f.Name, f.Length, len(k.content))
		}
	}
}

// TestCurlsFileNamesAreKept is about how curl writes a name; wire's tests say how it is cleaned.
func TestCurlsFileNamesAreKept(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for name, want := range map[string]string{
		"two  words.txt": "two  words.txt", `the "best" one's.txt`: `the "best" one's.txt`, "🎉 fête 写真.txt": "🎉 fête 写真.txt",
		"a;b,c=d.txt": "a;b,c=d.txt", "100%.txt": "100%.txt", "a%41b+c.txt": "a%41b+c.txt", "../../etc/passwd": "passwd", "../..": "file",
		"a%22b.txt":                 `a"b.txt`, // curl also sends this for a quote
		`C:\Users\ann\report.pdf`:   "report.pdf",
		`\\server\share\report.pdf`: "report.pdf",
		"a\r\nb.txt":                "ab.txt",
	} {
		// In curl's syntax a backslash escapes characters in quotes.
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)
		path := tempFile(t, "sent", name)
		for _, escape := range [][]string{nil, {"--form-escape"}} {
			if escape != nil && strings.ContainsAny(name, "\r\n") {
				continue // curl would send them as they are
			}
			f := c.curl(append(escape, "-F", "file=@"+path+`;filename="`+quoted+`"`, c.Base+"/upload")...)
			if f.Name != want || c.Get(f.LinkURL) != name {
				t.Errorf("%q %v is stored as %+v, want %q", name, escape, f, want)
			}
		}
	}
}

// program uploads in each way that the Python module requests offers, and prints the names
// that were stored.
const program = `
import io, json, requests, sys
base, user, password, name = sys.argv[1:]
auth = (user, password)
session = requests.Session()
session.trust_env = False
def pieces():
    yield b"con"
    yield b"tent"
answers = [
    session.post(base + "/upload", auth=auth, files={"file": (name, b"content")}),
    session.post(base + "/upload", auth=auth, files={"file": (name, io.BytesIO(b"content"), "text/plain")}, data={"comment": "x"}),
    session.post(base + "/upload", auth=auth, files=[("file", (name, b"content"))], params={"d": user}),
    session.post(base + "/upload", auth=auth, data=b"content", params={"file": name}),
    session.post(base + "/upload", auth=auth, data=io.BytesIO(b"content"), params={"file": name}),
    session.post(base + "/upload", auth=auth, data=pieces(), params={"file": name}),
    session.put(base + "/upload", auth=auth, data=b"content", params={"file": name}),
]
files = []
for a in answers:
    a.raise_for_status()
    newest = a.json()["files"][0]
    content = session.get(newest["linkURL"]).content.decode()
    files.append({"name": newest["name"], "id": newest["id"], "content": content})
bearer = session.post(base + "/auth/login", auth=auth).json()["bearer"]
refused = session.post(base + "/upload", headers={"Authorization": "Bearer " + bearer}, data=b"content")
files.append({"id": refused.status_code})
refused = session.post(base + "/upload", auth=(user, "wrong"), files={"file": (name, b"x" * 20_000_000)})
files.append({"id": refused.status_code})
print(json.dumps(files))
`

func TestPythonRequestsUploadsAFile(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import requests").Run(); err != nil {
		t.Skip("the Python module requests is not installed: pip install -r infra/ci/requirements.txt")
	}
	c := begin(t)
	const name = `the "best" 🎉 été.txt`
	out, err := exec.CommandContext(
		t.Context(),
		python,
		"-c",
		program,
		c.Base,
		c.Name,
		apitest.Password,
		name,
	).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var stored []struct {
		apitest.File
		Content string
	}
	if err := json.Unmarshal(out, &stored); err != nil || len(stored) != 9 {
		t.Fatalf("%v: %s", err, out)
	}
	refusal := int64(401)
	if c.InStack() { // the gateway takes no such body
		refusal = 413
	}
	if stored[7].ID != 400 || stored[8].ID != refusal {
		t.Errorf("a body without a name: status %d, want 400; a wrong password: status %d, want %d",
			stored[7].ID, stored[8].ID, refusal)
	}
	for i, f := range stored[:7] {
		if f.Name != name || f.Content != "content" || f.ID != int64(i+1) {
			t.Errorf("upload %d was stored as %+v", i+1, f)
		}
	}
}

// TestOAuth2ClientLogsInAndUploads fails some logins first, which the client repeats in another style.
func TestOAuth2ClientLogsInAndUploads(t *testing.T) {
	t.Parallel()
	c := begin(t)
	login := func(password string) (*oauth2.Config, *oauth2.Token, error) {
		config := &oauth2.Config{
			ClientID:     "some-client",
			ClientSecret: "its secret",
			Endpoint:     oauth2.Endpoint{TokenURL: c.Base + "/oauth2/token"},
		}
		token, err := config.PasswordCredentialsToken(t.Context(), c.Name, password)
		return config, token, err
	}
	for try, password := range []string{"first wrong", "second wrong", "third wrong"} {
		_, _, err := login(password)
		refused, _ := errors.AsType[*oauth2.RetrieveError](err)
		if refused == nil || refused.Response.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a wrong password gives %v", err)
		}
		expect.Equal(t, "failed logins", c.failures(), try+1)
	}
	config, token, err := login(apitest.Password)
	expect.NoErr(t, err)
	expect.Equal(t, "failed logins after a good one", c.failures(), 0)
	if token.Type() != "Bearer" || token.ExpiresIn != 3600 || token.AccessToken == "" {
		t.Errorf("the token is a %s for %d seconds", token.Type(), token.ExpiresIn)
	}
	resp, err := config.Client(t.Context(), token).
		Post(c.Base+"/upload?file=a.txt", "text/plain", strings.NewReader("content"))
	expect.NoErr(t, err)
	defer resp.Body.Close()
	expect.Equal(t, "the status", resp.StatusCode, 200)
	expect.Equal(t, "the files", c.names(), []string{"a.txt"})
}

// failures returns how many failed logins of the caller are recorded.
func (c caller) failures() int {
	c.Helper()
	item := struct{ Count int }{}
	if text, found := c.Items()["throttle#127.0.0.1 user#"+c.Name]; found {
		expect.NoErr(c.TB, json.Unmarshal([]byte(text), &item))
	}
	return item.Count
}

// TestProgramsOnWindowsUploadAFile sends what .NET and PowerShell do, written by hand, and then gets it by the link.
func TestProgramsOnWindowsUploadAFile(t *testing.T) {
	t.Parallel()
	const quoted, five, seven = `multipart/form-data; boundary="5f0c2a3e-7d1b-4a63-9c55-0e6b1a8f2d47"`,
		"Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.22621.4391",
		"Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.22631; en-US) PowerShell/7.4.6"
	part := func(headers string) string {
		const boundary = "--5f0c2a3e-7d1b-4a63-9c55-0e6b1a8f2d47"
		return boundary + "\r\n" + strings.ReplaceAll(
			headers,
			"\n",
			"\r\n",
		) + "\r\n\r\ncontent\r\n" + boundary + "--\r\n"
	}
	for what, k := range map[string]struct{ agent, request, kind, body, name string }{
		".NET, a name in German": {
			agent: "", request: "POST /upload", kind: quoted, name: "dü.txt",
			body: part("Content-Disposition: form-data; name=file; filename=\"=?utf-8?B?ZMO8LnR4dA==?=\"; filename*=utf-8''d%C3%BC.txt"),
		},
		"PowerShell 5, -InFile with a POST": {
			agent: five, request: "POST /upload?file=a.txt", kind: "application/x-www-form-urlencoded", name: "a.txt", body: "content",
		},
		"PowerShell to 7.3, a name in German": {
			agent: seven, request: "POST /upload", kind: quoted, name: "dü.txt",
			body: part("Content-Disposition: form-data; name=file; filename=\"=?utf-8?B?ZMO8LnR4dA==?=\""),
		},
		"PowerShell 7, -Form": {
			agent: seven, request: "POST /upload", kind: quoted, name: "a.txt",
			body: part("Content-Type: application/octet-stream\nContent-Disposition: form-data; name=file; filename=a.txt; filename*=utf-8''a.txt"),
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			headers := []string{
				"User-Agent", k.agent, "Accept", "text/plain", "Expect", "100-continue", "Content-Type", k.kind,
			}
			link := strings.TrimSpace(c.Ask(k.request, k.body, headers...).Want(200).WantHeaders(
				"Ferry-Files",
				"1",
			).Text)
			got := c.Send("GET "+link, "", "User-Agent", k.agent).Want(200)
			expect.Equal(t, "the bytes and the name", got.Text+c.names()[0], "content"+k.name)
		})
	}
}
