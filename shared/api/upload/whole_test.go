package upload_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// routes calls f with each way to send the bytes of a file: as a user, as a guest, in a bundle, and as
// the part of a session.
func (c caller) routes(f func(what string, send func(headers ...string) apitest.Answer)) {
	c.Helper()
	guest := c.request("").LinkURL
	kind, body := encode(someFiles("a")...)
	form := func(to string) func(...string) apitest.Answer {
		return func(headers ...string) apitest.Answer {
			return c.Ask(to, body, append(headers, "Content-Type", kind)...)
		}
	}
	raw := func(to string) func(...string) apitest.Answer {
		return func(headers ...string) apitest.Answer { return c.Ask(to, "hello!", headers...) }
	}
	f("a form", form("POST /upload"))
	f("a bundle", form("POST /upload?bundle=all"))
	f("a body", raw("POST /upload?file=a"))
	f("PUT", raw("PUT /upload?file=a"))
	f("PUT with a name", raw("PUT /upload/a"))
	f("a guest's form", form("POST "+guest))
	f("a guest's body", raw("PUT "+guest))
	if !c.InStack() {
		p := c.sign(c.plan("", 6), 1)
		f("a part", func(headers ...string) apitest.Answer { return c.Send("PUT "+p.URL, "hello!", headers...) })
	}
}

// TestAPieceOfAFileIsNoFile sends pieces as curl -C and upload widgets do.
func TestAPieceOfAFileIsNoFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.routes(func(what string, send func(...string) apitest.Answer) {
		for _, piece := range []string{"bytes 6-11/12", "bytes 0-5/12", "bytes 0-5/*", "bytes */6", "bytes 1-5/6", "items 0-5/6", "nonsense", "bytes 0-5/6, bytes 0-5/6"} {
			send("Content-Range", piece).Want(400, "session")
			c.wantNothing(what + " with " + piece)
		}
	})
	c.routes(func(what string, send func(...string) apitest.Answer) {
		send("Content-Range", "bytes 0-5/6").Want(200)
	})
	c.post("file=a", "hello", "Content-Range", "bytes 0-5/6").Want(400, "session")
	count := func(name, value string) formPart { return formPart{`name="` + name + `"`, nil, value} }
	before := len(c.names())
	for name, value := range map[string]string{
		"dzchunkindex": "1", "dztotalchunkcount": "many", "qqtotalparts": "2", "resumableTotalChunks": "2", "flowTotalChunks": "12", "chunks": "2",
	} {
		field := count(name, value)
		c.form("", append([]formPart{field}, someFiles("first")...)).Want(400, "session")
		c.form("bundle=x", append(someFiles("last"), field)).Want(400, "session")
		c.post("file=a&"+name+"="+value, "hello").Want(400, "session")
	}
	c.form("", []formPart{aFile("file", "a", "hello!", "Content-Range", "bytes 6-11/12")}).Want(400, "session")
	expect.Equal(t, "files", len(c.names()), before)
	whole := []formPart{count("dzchunkindex", "0"), count("dztotalchunkcount", "1")}
	c.form("", append(whole, someFiles("whole")...)).Want(200)
}

// TestACodedBodyIsRefused: its bytes are not what its sender means.
func TestACodedBodyIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.routes(func(what string, send func(...string) apitest.Answer) {
		for _, coding := range []string{"gzip", "GZIP", "identity, gzip", "br", "aws-chunked"} {
			send("Content-Encoding", coding).Want(415, "Content-Encoding").WantHeaders("Accept-Encoding", "identity")
			c.wantNothing(what + " in " + coding)
		}
		send("Content-Transfer-Encoding", "base64").Want(415, "Content-Transfer-Encoding")
		c.wantNothing(what + " in base64")
	})
	for name, value := range map[string]string{"Content-Encoding": "deflate", "Content-Transfer-Encoding": "Base64"} {
		for what, parts := range map[string][]formPart{
			"a second file": {aFile("file", "a", "1"), aFile("file", "b", "aGk=", name, value)},
			"a password":    {aFile("file", "a", "1"), {`name="password"`, []string{name, value}, "aGk="}},
		} {
			c.form("", parts).Want(415, name)
			c.wantNothing(what + " with " + name)
		}
	}
	for request, body := range map[string]string{
		"POST /uploads": `{"name":"a","length":1}`, "POST /requests": "{}", "POST /tokens": `{"name":"a","scope":"all"}`,
		"POST /oauth2/token": "grant_type=password", "POST /auth/change?k=x": "z=y", "POST /auth/login": "",
	} {
		kind := map[bool]string{true: "application/json", false: "application/x-www-form-urlencoded"}[strings.HasPrefix(body, "{")]
		c.Ask(request, body, "Content-Type", kind, "Content-Encoding", "gzip").Want(415).WantHeaders("Accept-Encoding", "identity")
	}
	for i, plain := range []string{"7bit", "8bit", "Binary"} {
		part := aFile("file", fmt.Sprint(i), "1", "Content-Transfer-Encoding", plain, "Content-Encoding", "Identity")
		c.form("", []formPart{part}, "Content-Encoding", "identity").Want(200)
	}
	c.Ask("GET /download/list", "", "Content-Encoding", "gzip").Want(200)
}
