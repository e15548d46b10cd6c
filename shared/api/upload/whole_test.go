package upload_test

import (
	"testing"

	"ferry/shared/boot/expect"
)

// TestAPieceOfAFileIsNoFile sends pieces as curl -C and upload widgets do. envelope's tests have the other headers.
func TestAPieceOfAFileIsNoFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Ask("PUT /upload/a", "hello!", "Content-Range", "bytes 6-11/12").Want(400, "session")
	count := func(name, value string) formPart { return formPart{`name="` + name + `"`, nil, value} }
	for name, value := range map[string]string{
		"dzchunkindex": "1", "dztotalchunkcount": "many", "qqtotalparts": "2", "resumableTotalChunks": "2", "flowTotalChunks": "12", "chunks": "2",
	} {
		c.form("", append(someFiles("a"), count(name, value))).Want(400, "session")
		c.post("file=a&"+name+"="+value, "hello").Want(400, "session")
	}
	c.form("bundle=x", []formPart{aFile("a", "hello!", "Content-Range", "bytes 6-11/12")}).Want(400, "session")
	c.wantNothing("a piece")
	whole := []formPart{count("dzchunkindex", "0"), count("dztotalchunkcount", "1")}
	f := c.form("", append(whole, someFiles("whole")...)).Want(200).File()
	expect.Equal(t, "the whole", c.Get(f.LinkURL), "whole")
}

// TestACodedPartIsRefused: its bytes are not what its sender means.
func TestACodedPartIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	coded := []string{"Content-Encoding", "deflate"}
	for what, part := range map[string]formPart{
		"a second file": aFile("b", "aGk=", coded...), "a password": {
			disposition: `name="password"`,
			headers:     coded,
			content:     "aGk=",
		},
	} {
		c.form("", append(someFiles("a"), part)).Want(415, "Content-Encoding")
		c.wantNothing(what)
	}
	c.form("", []formPart{aFile("a", "1", "Content-Transfer-Encoding", "Binary")}).Want(200)
}
