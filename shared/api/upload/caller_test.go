package upload_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const password = "a password to try"

// caller is a user of a test's own service.
type caller struct {
	*apitest.Server
	name, password, bearer string
}

// begin starts a service with the active users ann, the caller, and bob.
func begin(t *testing.T, options ...apitest.Option) caller {
	t.Helper()
	return login(apitest.New(t, options...))
}

// beginIn is begin with a folder that may already have data.
func beginIn(t *testing.T, dir string) caller {
	t.Helper()
	return login(apitest.Open(t, dir))
}

func login(s *apitest.Server) caller {
	s.Helper()
	c := caller{Server: s, name: "ann", password: password}
	if len(c.Partitions("user#")) == 0 {
		c.AddUser(c.name, c.password)
		c.AddUser("bob", c.password)
	}
	c.bearer = c.Login(c.name, c.password)
	return c
}

// as returns the same service with another caller.
func (c caller) as(name string) caller {
	c.Helper()
	c.name, c.bearer = name, c.Login(name, c.password)
	return c
}

// post sends a body to /upload; headers are pairs.
func (c caller) post(query, contentType string, body io.Reader, headers ...string) *http.Response {
	c.Helper()
	headers = append(headers, "Authorization", "Bearer "+c.bearer)
	if contentType != "" {
		headers = append(headers, "Content-Type", contentType)
	}
	return c.Request("POST", "/upload?"+query, body, headers...)
}

// form sends parts as multipart/form-data.
func (c caller) form(query string, parts ...formPart) *http.Response {
	c.Helper()
	kind, body := encode(parts...)
	return c.post(query, kind, strings.NewReader(body))
}

// names lists the names in the caller's area, oldest first.
func (c caller) names() []string {
	c.Helper()
	listed := c.Decode(c.Request("GET", "/download/list", nil, "Authorization", "Bearer "+c.bearer), 200).Files
	names := make([]string, len(listed))
	for i, f := range listed {
		names[len(names)-1-i] = f.Name
	}
	return names
}

// get downloads by a link.
func (c caller) get(link string) string {
	c.Helper()
	resp := c.Request("GET", strings.TrimPrefix(link, c.Base), nil)
	if resp.StatusCode != 200 {
		c.Fatalf("the link: status %d", resp.StatusCode)
	}
	return c.Text(resp)
}

// wantNothing fails if an upload has left anything.
func (c caller) wantNothing(what string) {
	c.Helper()
	if left := c.Server.Files(); len(left) > 0 {
		c.Errorf("%s: there are files %q", what, left)
	}
	for key := range c.Items() {
		for _, prefix := range []string{"files#", "backup#", "link#", "outbox#", "receipt#", "event#", "reserved#"} {
			if strings.HasPrefix(key, prefix) {
				c.Errorf("%s: there is an item %q", what, key)
			}
		}
	}
}

// wantNoneCreated fails if bytes were stored, even for a moment, since the calls to the
// stores were last counted.
func (c caller) wantNoneCreated(what string) {
	c.Helper()
	if n := c.Calls.Reset()["blob.Create"]; n > 0 {
		c.Errorf("%s: %d objects were stored before the request was refused", what, n)
	}
}

// waitForLog waits until n uploads are logged, as a handler may run longer than its client.
func (c caller) waitForLog(n int) {
	c.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if strings.Count(c.Log.String(), "path=/v1/upload") >= n {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("the upload has not ended; the log:\n%s", c.Log)
		}
	}
}

// formPart is a part of a form. It is a file if its disposition has a file name.
type formPart struct {
	disposition string // after "form-data; "
	headers     []string
	content     string
}

// aFile returns a part as curl -F sends it.
func aFile(field, name, content string, headers ...string) formPart {
	return formPart{fmt.Sprintf(`name="%s"; filename="%s"`, field, name), headers, content}
}

// encode returns the Content-Type and body of a form.
func encode(parts ...formPart) (contentType, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {"form-data; " + p.disposition}}
		for i := 0; i+1 < len(p.headers); i += 2 {
			h.Set(p.headers[i], p.headers[i+1])
		}
		to, _ := w.CreatePart(h)
		io.WriteString(to, p.content)
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

// tempFile writes a file of any name in a new folder.
func tempFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("writing a file to send: %v", err)
	}
	return path
}

// wantStatus fails unless a response has this status, and an envelope with it.
func (c caller) wantStatus(what string, resp *http.Response, status int) {
	c.Helper()
	if resp.StatusCode != status {
		c.Errorf("%s: status %d, want %d (%s)", what, resp.StatusCode, status, resp.Header.Get("Ferry-Error"))
		return
	}
	if e := c.Decode(resp, status); e.Status != status || e.Description != http.StatusText(status) || len(e.Files) > 0 {
		c.Errorf("%s: the envelope is %+v", what, e)
	}
}

func quota(n int64) func(*auth.User) { return func(u *auth.User) { u.Quota = n } }
