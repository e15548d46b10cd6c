package upload_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
)

const partSize = blob.MinPartSize

// call sends JSON and decodes the answer.
func (c caller) call(method, path, body string, status int, into any, headers ...string) *http.Response {
	c.Helper()
	resp := c.Request(method, path, strings.NewReader(body), append(headers, "Authorization", "Bearer "+c.bearer)...)
	if resp.StatusCode != status {
		c.Fatalf("%s %s: status %d, want %d (%s)", method, path, resp.StatusCode, status, resp.Header.Get("Ferry-Error"))
	}
	if into != nil {
		must(c.TB, json.Unmarshal([]byte(c.Text(resp)), into))
	}
	return resp
}

type session struct {
	ID, Name, State, D, From string
	Length, PartSize         int64
	Parts                    int
	Arrived                  []struct {
		Number    int
		Size      int64
		CRC64NVME string
	}
}

type part struct {
	Number  int
	Size    int64
	URL     string
	Method  string
	Headers map[string]string
}

func content(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func (c caller) plan(fields string, length int) session {
	c.Helper()
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"film.mp4","length":%d,"partSize":%d%s}`, length, partSize, fields), 201, &s)
	return s
}

func (c caller) sign(id string, body string) []part {
	c.Helper()
	var out struct{ Parts []part }
	c.call("POST", "/uploads/"+id+"/parts", body, 200, &out)
	return out.Parts
}

// put sends bytes exactly as a signed part says.
func (c caller) put(p part, data []byte) *http.Response {
	c.Helper()
	r, err := http.NewRequest(p.Method, p.URL, bytes.NewReader(data))
	must(c.TB, err)
	for name, value := range p.Headers {
		r.Header.Set(name, value)
	}
	return c.Do(r)
}

// wantPut is put, and checks the status of the answer.
func (c caller) wantPut(p part, data []byte, status int) {
	c.Helper()
	if resp := c.put(p, data); resp.StatusCode != status {
		c.Fatalf("part %d: status %d, want %d (%s)", p.Number, resp.StatusCode, status, resp.Header.Get("Ferry-Error"))
	}
}

func (c caller) sendAll(s session, data []byte) {
	c.Helper()
	for n := 1; n <= s.Parts; n++ {
		p := c.sign(s.ID, fmt.Sprintf(`{"numbers":[%d]}`, n))[0]
		from := int64(n-1) * s.PartSize
		c.wantPut(p, data[from:from+p.Size], 200)
	}
}

func (c caller) complete(id, body string) apitest.Envelope {
	c.Helper()
	return c.Decode(c.Request("POST", "/uploads/"+id+"/complete", strings.NewReader(body), "Authorization", "Bearer "+c.bearer), 200)
}

// refused checks that a request is refused with a reason that contains these words.
func (c caller) refused(method, path, body string, status int, words ...string) {
	c.Helper()
	resp := c.call(method, path, body, status, nil)
	for _, w := range words {
		if !strings.Contains(resp.Header.Get("Ferry-Error"), w) {
			c.Errorf("%s %s: %q does not say %q", method, path, resp.Header.Get("Ferry-Error"), w)
		}
	}
}

// notFound checks that nothing can be done with a session, with a reason that contains these words.
func (c caller) notFound(id string, words ...string) {
	c.Helper()
	for _, what := range [][3]string{{"GET"}, {"DELETE"}, {"POST", "/complete"}, {"POST", "/parts", `{"numbers":[1]}`}} {
		c.refused(what[0], "/uploads/"+id+what[1], what[2], 404, words...)
	}
}

func (c caller) wantFile(e apitest.Envelope, data []byte) {
	c.Helper()
	if len(e.Files) == 0 || e.Files[0].Length != int64(len(data)) {
		c.Fatalf("the answer lists %+v", e.Files)
	}
	resp := c.Request("GET", strings.TrimPrefix(e.Files[0].LinkURL, c.Base), nil)
	if resp.StatusCode == http.StatusFound { // in a stack, a large file comes from the store itself
		r, err := http.NewRequest("GET", resp.Header.Get("Location"), nil)
		must(c.TB, err)
		resp = c.Do(r)
	}
	if got := c.Text(resp); got != string(data) {
		c.Errorf("the link gives %d bytes, which are not the %d that were sent", len(got), len(data))
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
