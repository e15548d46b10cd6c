package upload_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
)

// unzip returns the names and contents of an archive, in turn.
func unzip(t *testing.T, archive string) (all []string) {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	expect.NoErr(t, err)
	for _, f := range z.File {
		r, err := f.Open()
		expect.NoErr(t, err)
		text, err := io.ReadAll(r)
		expect.NoErr(t, err)
		all = append(all, f.Name, string(text))
	}
	return all
}

func TestAFormBecomesABundle(t *testing.T) {
	t.Parallel()
	c := begin(t)
	parts := []formPart{
		aFile("file", "dir/a.txt", "one"), {disposition: `name="comment"`, content: "x"}, aFile("file", "./b ü.txt", ""),
		aFile("other", "dir/empty/", ""), {disposition: `name="password"`, content: "open sesame"},
	}
	f := c.form("bundle=my%20files.zip&downloads=5", parts).Want(200).File()
	expect.Equal(t, "the name", f.Name, "my files.zip")
	claim := c.Send("GET "+f.LinkURL, "", "Ferry-Link-Password", "open sesame").Want(302).Header.Get("Location")
	got := unzip(t, c.Get(claim))
	expect.Equal(t, "the files", got, []string{"dir/a.txt", "one", "b ü.txt", "", "dir/empty/", ""})
	record := c.Ask("GET /files/1", "").Want(200).Text
	if !strings.Contains(record, `"entries":3`) || !strings.Contains(record, `"type":"application/zip"`) {
		t.Errorf("the record is %s", record)
	}
}

func TestABundleThatCannotBeMadeIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	large := aFile("file", "large.bin", strings.Repeat("x", 4<<20+1))
	for what, k := range map[string]struct {
		query string
		parts []formPart
		want  int
		says  string
	}{
		"a large file":         {"bundle=a.zip", []formPart{aFile("file", "a", "1"), large}, 413, "large.bin"},
		"a path that goes up":  {"bundle=a.zip", []formPart{aFile("file", "../a", "1")}, 400, "../a"},
		"an absolute path":     {"bundle=a.zip", []formPart{aFile("file", "/etc/passwd", "1")}, 400, "/etc/passwd"},
		"the same path twice":  {"bundle=a.zip", someFiles("a", "b", "a"), 400, `"a"`},
		"a file as a folder":   {"bundle=a.zip", someFiles("a", "a/b"), 400, "a/b"},
		"a folder with bytes":  {"bundle=a.zip", []formPart{aFile("file", "a/", "1")}, 400, "a/"},
		"no file":              {"bundle=a.zip", nil, 400, "no entries"},
		"another SHA-256":      {"bundle=a.zip", []formPart{aFile("file", "a", "1", "Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:")}, 400, "SHA-256"},
		"no name":              {"bundle=", someFiles("a"), 400, "bundle"},
		"a name that is none":  {"bundle=%2F", someFiles("a"), 400, "bundle"},
		"a name of one file":   {"bundle=a.zip&file=b", someFiles("a"), 400, "bundle"},
		"a misspelt parameter": {"bundel=a.zip", someFiles("a"), 400, "bundle"},
	} {
		t.Log(what)
		c.form(k.query, k.parts).Want(k.want, k.says)
	}
	c.Ask("POST /upload?bundle=a.zip", "not a form").Want(400, "form")
	c.wantNothing("a bundle that was refused")
}

// TestNamesAndAFileShareTheMemoryOfAForm has names of about 2 MiB.
func TestNamesAndAFileShareTheMemoryOfAForm(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("a gateway takes no body of this size")
	var names []string
	for i := range 9000 {
		names = append(names, fmt.Sprintf("%04d %s", i, strings.Repeat("x", 130)))
	}
	with := func(length int) []formPart {
		return append(someFiles(names...), aFile("file", "last", strings.Repeat("x", length)))
	}
	c.form("bundle=a.zip", with(2<<20+1)).Want(413, "last", "2097152 bytes")
	link := c.form("bundle=a.zip", with(2<<20)).Want(200).File().LinkURL
	expect.Equal(t, "names and contents", len(unzip(t, c.Get(link))), 2*9001)
}

func TestALongHeaderOfAPartIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	long := aFile("file", "b", "", "Content-Description", strings.Repeat("x", 32<<10))
	for _, query := range []string{"", "bundle=a.zip"} {
		c.form(query, []formPart{aFile("file", "a", strings.Repeat("x", 1<<20)), long}).Want(400, "the header of a part has more than 16384 bytes")
		c.form(query, []formPart{long}).Want(400, "the header of a part")
	}
	c.wantNothing("a form with a long header")
	c.form("", []formPart{aFile("file", "a", "", "Content-Description", strings.Repeat("x", 8<<10)), aFile("file", "b", "")}).Want(200)
}

// TestAFormThatEndsEarlyIsRefused: its body is as long as it says.
func TestAFormThatEndsEarlyIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const header = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
	ask := func(query, end string) apitest.Answer {
		return c.Ask("POST /upload?"+query, header+"\r\nhello\r\n"+end, "Content-Type", "multipart/form-data; boundary=b")
	}
	for _, query := range []string{"", "bundle=a.zip"} {
		for _, end := range []string{"", "--b", "--b-", "--b\r\n", "--b\r\nContent-", header, header + "\r\n", header + "\r\nhello"} {
			ask(query, end).Want(400, "cut off")
		}
		c.wantNothing("a form that ends early")
	}
	for i, end := range []string{"--b--", "--b--\r\n", "--b--\r\nmore"} {
		ask("", end).Want(200)
		expect.Equal(t, "files after "+end, len(c.names()), i+1)
	}
}

func TestARepeatedBundleIsTheSame(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.form("bundle=a.zip", someFiles("a", "b"), "Idempotency-Key", "k").Want(200).File()
	again := c.form("bundle=a.zip", someFiles("a", "b"), "Idempotency-Key", "k").Want(200).File()
	expect.Equal(t, "the repeat", again, first)
	c.form("bundle=a.zip", someFiles("a", "c"), "Idempotency-Key", "k").Want(409)
}

func TestABundleInAFormMayHaveManyFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var parts []formPart
	var names bytes.Buffer
	for i := range 1000 {
		names.Reset()
		names.WriteString(strings.Repeat("dir/", i%5))
		names.WriteString(string(rune('a'+i%26)) + strings.Repeat("x", i/26))
		parts = append(parts, aFile("file", names.String(), "hello"))
	}
	link := c.form("bundle=a.zip", parts).Want(200).File().LinkURL
	expect.Equal(t, "names and contents", len(unzip(t, c.Get(link))), 2000)
	many := make([]string, bundle.MaxEntries+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	c.form("bundle=a.zip", someFiles(many...)).Want(400, "10000 entries")
}
