package upload_test

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
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
		aFile("dir/a.txt", "one"), {disposition: `name="comment"`, content: "x"}, aFile("./b ü.txt", ""),
		{disposition: `name=other; filename="dir/empty/"`}, {disposition: `name="password"`, content: "open sesame"},
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

// TestABundleThatCannotBeMadeIsRefused has one path that is wrong; bundle's tests have the others.
func TestABundleThatCannotBeMadeIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	large := aFile("large.bin", strings.Repeat("x", 4<<20+1))
	other := aFile("a", "1", "Repr-Digest", digestOf("2"))
	c.form("bundle=a.zip", append(someFiles("a"), large)).Want(413, "large.bin")
	for says, parts := range map[string][]formPart{
		"../a": someFiles("../a"), "/etc/passwd": someFiles("/etc/passwd"), "no entries": nil, "SHA-256": {other},
	} {
		c.form("bundle=a.zip", parts).Want(400, says)
	}
	for _, query := range []string{"bundle=", "bundle=%2F", "bundle=a.zip&file=b"} {
		c.form(query, someFiles("a")).Want(400, "bundle")
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
		return append(someFiles(names...), aFile("last", strings.Repeat("x", length)))
	}
	c.form("bundle=a.zip", with(2<<20+1)).Want(413, "last", "2097152 bytes")
	link := c.form("bundle=a.zip", with(2<<20)).Want(200).File().LinkURL
	expect.Equal(t, "names and contents", len(unzip(t, c.Get(link))), 2*9001)
}

func TestALongHeaderOfAPartIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	long := aFile("b", "", "Content-Description", strings.Repeat("x", 32<<10))
	for query, parts := range map[string][]formPart{
		"":             {aFile("a", strings.Repeat("x", 1<<20)), long},
		"bundle=a.zip": {long},
	} {
		c.form(query, parts).Want(400, "the header of a part has more than 16384 bytes")
	}
	c.wantNothing("a form with a long header")
	c.form("", []formPart{aFile("a", "", "Content-Description", strings.Repeat("x", 8<<10)), aFile("b", "")}).Want(200)
}

// TestAFormThatEndsEarlyIsRefused: its body is as long as it says.
func TestAFormThatEndsEarlyIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const header = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
	ask := func(query, end string) apitest.Answer {
		return c.Ask(
			"POST /upload?"+query,
			header+"\r\nhello\r\n"+end,
			"Content-Type",
			"multipart/form-data; boundary=b",
		)
	}
	for _, query := range []string{"", "bundle=a.zip"} {
		for _, end := range []string{
			"", "--b", "--b-", "--b\r\n", "--b\r\nContent-", header, header + "\r\n", header + "\r\nhello",
		} {
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
