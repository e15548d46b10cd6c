package upload_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// caller is a user who uploads.
type caller struct{ apitest.Caller }

// begin starts a service and returns ann.
func begin(t *testing.T, options ...apitest.Option) caller {
	t.Helper()
	return caller{apitest.Begin(t, options...)}
}

// as returns another user of the same service, logged in.
func (c caller) as(name string) caller { c.Helper(); return caller{c.As(name)} }

// post uploads a raw body.
func (c caller) post(query, content string, headers ...string) apitest.Answer {
	c.Helper()
	return c.Ask("POST /upload?"+query, content, headers...)
}

// form uploads parts as multipart/form-data.
func (c caller) form(query string, parts []formPart, headers ...string) apitest.Answer {
	c.Helper()
	kind, body := encode(parts...)
	return c.post(query, body, append(headers, "Content-Type", kind)...)
}

// names lists the names in the caller's area, oldest first.
func (c caller) names() (names []string) {
	c.Helper()
	for _, f := range c.Ask("GET /download/list", "").Want(200).Files {
		names = append([]string{f.Name}, names...)
	}
	return names
}

// wantNothing fails if an upload has left anything.
func (c caller) wantNothing(what string) {
	c.Helper()
	if left := c.Files(); len(left) > 0 {
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

// wantCounts checks how many items there are in the partitions with these prefixes.
func (c caller) wantCounts(want map[string]int) {
	c.Helper()
	for prefix, n := range want {
		expect.Equal(c.TB, "items of "+prefix, len(c.Partitions(prefix)), n)
	}
}

// wantNoneCreated fails if bytes were stored, even for a moment, since the calls to the
// stores were last counted.
func (c caller) wantNoneCreated(what string) {
	c.Helper()
	expect.Equal(c.TB, "objects stored before a refusal of "+what, c.Calls.Reset()["blob.Create"], 0)
}

// waitForLog waits until an upload is logged, as a handler may run longer than its client.
func (c caller) waitForLog() {
	c.Helper()
	if !expect.Eventually(func() bool { return strings.Contains(c.Log.String(), "path=/v1/upload") }) {
		c.Fatalf("the upload has not ended; the log:\n%s", c.Log)
	}
}

// formPart is a part of a form. It is a file if its disposition has a file name.
type formPart struct {
	disposition string // after "form-data; "
	headers     []string
	content     string
}

// aFile returns a part as curl -F sends it.
func aFile(name, content string, headers ...string) formPart {
	return formPart{`name="file"; filename="` + name + `"`, headers, content}
}

// someFiles returns files with these names, which are their contents too.
func someFiles(names ...string) (parts []formPart) {
	for _, name := range names {
		parts = append(parts, aFile(name, name))
	}
	return parts
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
	expect.NoErr(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
