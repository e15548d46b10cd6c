package upload_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/service"
)

func TestFilesOfAFormAreFound(t *testing.T) {
	t.Parallel()
	c := begin(t)
	text := func(field, content string) formPart { return formPart{fmt.Sprintf(`name="%s"`, field), nil, content} }
	for _, k := range []struct {
		what, query string
		parts       []formPart
		want        map[string]string // contents by name
	}{
		{"one file", "", []formPart{aFile("file", "a", "1")}, map[string]string{"a": "1"}},
		{"a file of 0 bytes", "", []formPart{aFile("file", "empty", "")}, map[string]string{"empty": ""}},
		{"several files", "", []formPart{aFile("file", "b", "1"), aFile("file", "c", "2"), aFile("other", "d", "3")},
			map[string]string{"b": "1", "c": "2", "d": "3"}},
		{"fields before, between and after", "", []formPart{text("x", "no"), aFile("file", "e", "1"), text("file2", "no"), aFile("file", "f", "2"), text("y", "no")},
			map[string]string{"e": "1", "f": "2"}},
		{"a file in a field of another name", "", []formPart{text("comment", "no"), aFile("document", "g", "1")}, map[string]string{"g": "1"}},
		{"a part named file without a file name", "", []formPart{text("file", "plain")}, map[string]string{"file": "plain"}},
		{"a part named file without a file name, named by the query", "file=named.txt", []formPart{text("file", "plain")}, map[string]string{"named.txt": "plain"}},
		{"a file named by the query", "file=better.txt", []formPart{aFile("file", "worse.txt", "1")}, map[string]string{"better.txt": "1"}},
		{"several files, which the query cannot name", "file=ignored", []formPart{aFile("file", "h", "1"), aFile("file", "i", "2")}, map[string]string{"h": "1", "i": "2"}},
		{"a file and an input without a choice", "", []formPart{aFile("first", "", ""), aFile("second", "j", "1")}, map[string]string{"j": "1"}},
		{"an impossible name", "", []formPart{aFile("file", "..", "1")}, map[string]string{"file": "1"}},
		{"content that looks like a boundary", "", []formPart{aFile("file", "k", "\r\n--b\r\n--b--\r\n")}, map[string]string{"k": "\r\n--b\r\n--b--\r\n"}},
		{"a name in Latin-1", "", []formPart{{`name="file"; filename="_.txt"; filename*=ISO-8859-1''%E9.txt`, nil, "1"}}, map[string]string{"é.txt": "1"}},
		{"an encoded name with a folder", "", []formPart{{`name=file; filename="=?utf-8?Q?../=C3=A9=0A?="`, nil, "1"}}, map[string]string{"é": "1"}},
		{"names that are no UTF-8", "", []formPart{aFile("file", "a\xe9", "1"), {"name=file; filename=\x80 b", nil, "2"}}, map[string]string{"aé": "1", "€ b": "2"}},
		{"a name in the query that is no UTF-8", "file=c%E9.txt", []formPart{aFile("file", "x", "1")}, map[string]string{"cé.txt": "1"}},
		{"two files of one name", "", []formPart{aFile("file", "m", "1"), aFile("file", "m", "1")}, map[string]string{"m": "1"}},
	} {
		if c.InStack() && strings.Contains(k.query, "%E9") { // the gateway replaces what is no UTF-8
			continue
		}
		before := len(c.names())
		e := c.form(k.query, k.parts).Want(200)
		got := map[string]string{}
		for _, f := range e.Files[:len(e.Files)-before] {
			got[f.Name] = c.Get(f.LinkURL)
			expect.Equal(t, k.what+", the length", f.Length, int64(len(got[f.Name])))
		}
		expect.Equal(t, k.what, got, k.want)
		expect.Equal(t, k.what, e.User+" "+e.Description, "ann handlerDownloadList:succsessfully")
	}
}

func TestMalformedBodyStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const form = "multipart/form-data; boundary=b"
	const head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
	_, one := encode(aFile("file", "a", "1"))
	for _, k := range []struct {
		what, query, kind, body string
		status                  int
		says                    string
	}{
		{"no type and no name", "", "", "content", 400, "file"},
		{"JSON", "", "application/json", `{"file":"a"}`, 400, "file"},
		{"a URL-encoded form", "", "application/x-www-form-urlencoded", "file=a", 400, "file"},
		{"a boundary without a value", "", "multipart/form-data; boundary", one, 400, "boundary"},
		{"a form with another boundary", "", "multipart/form-data; boundary=another", one, 400, "body"},
		{"another multipart type", "", "multipart/mixed; boundary=b", one, 415, "multipart/form-data"},
		{"an empty body", "", form, "", 400, "body"},
		{"a form without parts", "", form, "--b--\r\n", 400, "no file"},
		{"a form that does not begin", "", form, "just text", 400, "body"},
		{"a malformed header", "", form, "--b\r\nthis is no header\r\n\r\ncontent\r\n--b--\r\n", 400, "body"},
		{"an endless header", "", form, "--b\r\nX: " + strings.Repeat("x", 11<<20), 400, "body"},
		{"very many headers", "", form, "--b\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n\r\n--b--\r\n", 400, "body"},
		{"a name in another charset", "", form, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename*=Shift_JIS''%83\r\n\r\ncontent\r\n--b--\r\n", 400, "Content-Disposition"},
		{"a password whose name cannot be read", "", form, head + "\r\ncontent\r\n--b\r\nContent-Disposition: form-data; name*=x''password\r\n\r\nsecret\r\n--b--\r\n", 400, "Content-Disposition"},
		{"a part without a disposition", "", form, "--b\r\n\r\ncontent\r\n--b--\r\n", 400, "no file"},
		{"an impossible name for a raw body", "file=..", "", "content", 400, "file name"},
		{"a malformed parameter beside the name", "file=a&x=%zz", "", "content", 400, "query"},
	} {
		if c.InStack() && (len(k.body) > 10<<20 || strings.Contains(k.query, "%zz")) {
			continue // the gateway takes no such body, and parses queries
		}
		c.post(k.query, k.body, "Content-Type", k.kind).Want(k.status, k.says)
		c.wantNothing(k.what)
	}
	for what, parts := range map[string][]formPart{
		"no parts": {}, "only fields": {{`name="x"`, nil, "1"}}, "no file chosen": {aFile("file", "", "")},
		"too many files": slices.Repeat(someFiles("a"), files.MaxFiles+1), "too many fields": slices.Repeat([]formPart{{`name="x"`, nil, "1"}}, 201),
	} {
		c.form("", parts).Want(400)
		c.wantNothing(what)
	}
}

// TestFormSizeIsBoundedByOneTransaction uses up the hundred operations of a transaction.
// Recipients need some of them, and so do events, a receipt, a key and a quota.
func TestFormSizeIsBoundedByOneTransaction(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		query                 string
		files, notices, links int
	}{
		"without recipients":  {"notify=1", 20, 0, 20},
		"with a recipient":    {"notify=1&m=bob@example.com", 16, 16, 32},
		"with two recipients": {"notify=1&m=bob@example.com&c=%2B393471234567", 12, 24, 36},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, func(s *service.Settings, _ *local.ServiceOptions) { s.Events = true })
			c.AddUser("zoe", apitest.Password, apitest.Quota(100_000))
			send := func(count, status int) {
				c.form(k.query+"&d=zoe", slices.Repeat(someFiles("a"), count), files.KeyHeader, "k").Want(status)
			}
			send(k.files+1, 400)
			c.wantNothing("one more")
			send(k.files, 200)
			c.wantCounts(map[string]int{"files#zoe": k.files, "outbox#": k.notices, "link#": k.links, "receipt#": k.files, "event#": k.files})
		})
	}
}

func TestRawBodyIsAFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	tomorrow := c.Clock.Now().Add(24 * time.Hour).In(time.FixedZone("", 2*60*60)).Format(time.RFC3339)
	for _, k := range []struct{ what, method, query, kind, name, content string }{
		{"without a type", "POST", "file=a.txt", "", "a.txt", "content"},
		{"by PUT", "PUT", "file=b.txt", "", "b.txt", "content"},
		{"of 0 bytes", "POST", "file=c.txt", "text/plain", "c.txt", ""},
		{"in a folder", "PUT", "file=x/y/e.txt", "", "e.txt", "content"},
		{"with spaces and emoji", "PUT", "file=f+%F0%9F%8E%89%20g.txt", "", "f 🎉 g.txt", "content"},
		{"with semicolons, until a time with an offset", "PUT", "file=a;b;.txt&expires=" + tomorrow, "", "a;b;.txt", "content"},
		{"after an ampersand of HTML", "PUT", "lang=de&amp;file=k.txt&amp%3Bexpires=7d", "", "k.txt", "content"},
		{"with quotes", "PUT", "file=%22h%22.txt", "", `"h".txt`, "content"},
		{"JSON", "POST", "file=i.json", "application/json", "i.json", "{}"},
		{"a URL-encoded form", "POST", "file=j.txt", "application/x-www-form-urlencoded", "j.txt", "a=b"},
	} {
		f := c.Ask(k.method+" /upload?"+k.query, k.content, "Content-Type", k.kind).Want(200).File()
		if f.Name != k.name || f.Length != int64(len(k.content)) || c.Get(f.LinkURL) != k.content {
			t.Errorf("%s: stored %+v, want %q with %q", k.what, f, k.name, k.content)
		}
	}
}

// TestWhatCanBeReadOfATypeIsKept: a download has it, and pages compare it without its charset.
func TestWhatCanBeReadOfATypeIsKept(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for stated, want := range map[string]string{
		"text/plain;; charset=utf-8": "text/plain; charset=utf-8", "TEXT/HTML; charset=ISO-8859-1; x=y": "text/html; charset=ISO-8859-1",
		";;;": "application/octet-stream", "application/x-www-form-urlencoded; charset=utf-8": "application/octet-stream",
	} {
		links := []string{
			c.post("file=note", "hello", "Content-Type", stated).Want(200).File().LinkURL,
			c.form("", []formPart{aFile("file", "note", "hello", "Content-Type", stated)}).Want(200).File().LinkURL,
		}
		s := c.begins(`{"name":"note","length":5,"type":"` + stated + `"}`)
		c.sendAll(s, "hello")
		for _, link := range append(links, c.complete(s, "").Want(200).File().LinkURL) {
			c.Send("GET "+link, "").Want(200).WantHeaders("Content-Type", want)
			page := strings.Replace(c.Send("GET "+link, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Header.Get("Location"), "../..", c.Root, 1)
			shows := strings.Contains(c.Send("GET "+page, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Text, ">hello</")
			expect.Equal(t, stated+" has a preview", shows, strings.HasPrefix(want, "text/plain"))
		}
	}
	for _, boundary := range []string{"----=_Part_1:2/3", `"b c"`} {
		plain := strings.Trim(boundary, `"`)
		body := "--" + plain + "\r\nContent-Disposition: form-data; name=file\r\n\r\n1\r\n--" + plain + "--\r\n"
		c.post("", body, "Content-Type", "multipart/form-data; boundary="+boundary).Want(200)
	}
}

func TestAFormsPasswordProtectsTheLinksOfItsFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	password := formPart{disposition: `name="password"`, content: "open sesame"}
	for what, parts := range map[string][]formPart{
		"before": append([]formPart{password}, someFiles("a", "b")...),
		"after":  append(someFiles("c", "d"), password),
	} {
		for _, f := range c.form("", parts).Want(200).Files[:2] {
			c.Send("GET "+f.LinkURL, "").Want(401, "password")
			expect.Equal(t, what+" the files", c.Send("GET "+f.LinkURL, "", "Ferry-Link-Password", "open sesame").Code, 302)
		}
	}
	empty := formPart{disposition: `name="password"`}
	open := c.form("", append(someFiles("e"), empty)).Want(200).File()
	expect.Equal(t, "the bytes", c.Get(open.LinkURL), "e")
}

func TestAFormRefusesWhatMayBeALimit(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, name := range []string{"downloads", "expires", "expire", "pasword", "Password"} {
		field := formPart{disposition: `name="` + name + `"`, content: "3"}
		c.form("", append(someFiles("a"), field)).Want(400).WantHeaders("Ferry-Parameter", name)
	}
	long := formPart{disposition: `name="password"`, content: strings.Repeat("é", 129)}
	c.form("", append(someFiles("a"), long)).Want(400, "128 characters")
	c.wantNothing("a form that is refused")
	other := formPart{disposition: `name="comment"`, content: "3"}
	c.form("", append(someFiles("a"), other)).Want(200)
}

func TestAnAddressThatMayHaveALimitIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for query, want := range map[string]int{
		"download=1": 400, "Downloads=1": 400, "expiry=7d": 400, "expires=": 400, "downloads=": 400,
		"password=x": 400, "pasword=x": 400, "notify2=1": 400,
		"exp=1": 200, "description=1": 200, "x=y": 200,
	} {
		expect.Equal(t, query, c.post("file=a&"+query, "1").Code, want)
	}
	c.Ask("POST /uploads?downloads=3", `{"name":"a","length":1}`).Want(400, "downloads")
	c.Ask("GET /uploads?limits=3", "").Want(400, "limits")
	c.Ask("GET /tokens?x=3", "").Want(400, "x")
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// digest sends a header with a form, or with a raw body if it has no parts.
func (c caller) digest(header string, parts []formPart) apitest.Answer {
	c.Helper()
	if parts == nil {
		return c.post("file=x", "content", "Repr-Digest", header)
	}
	return c.form("", parts, "Repr-Digest", header)
}

func TestMatchingDigestIsKept(t *testing.T) {
	t.Parallel()
	c := begin(t)
	want := digestOf("content")
	one := []formPart{aFile("file", "x", "content")}
	ofPart := []formPart{aFile("file", "x", "content", "Repr-Digest", want)}
	for _, k := range []struct {
		what, header string
		parts        []formPart // nil for a raw body
		want         string
	}{
		{"of a raw body", want, nil, want},
		{"of a raw body, with one of another kind", "sha-512=:AAAA:, " + want, nil, want},
		{"of a raw body, with a parameter", want + ";x=1", nil, want},
		{"of another kind", "sha-512=:AAAA:", nil, ""},
		{"that is missing", "", nil, ""},
		{"of a part", "", ofPart, want},
		{"of a form with one file", want, one, want},
		{"of a form, and of its part", want, ofPart, want},
	} {
		a := c.digest(k.header, k.parts).Want(200)
		expect.Equal(t, k.what, c.Send("GET "+a.File().LinkURL, "").Header.Get("Repr-Digest"), k.want)
	}
}

func TestWrongDigestStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	wrong := digestOf("another content")
	plain, labelled := aFile("file", "x", "content"), aFile("file", "x", "content", "Repr-Digest", wrong)
	fine := aFile("file", "y", "fine")
	sum, other := sha256.Sum256([]byte("content")), sha256.Sum256([]byte("another content"))
	both := []string{hex.EncodeToString(sum[:]), hex.EncodeToString(other[:])}
	for what, k := range map[string]struct {
		header string
		parts  []formPart // nil for a raw body
		says   []string
	}{
		"of a raw body":                  {wrong, nil, both},
		"of a part":                      {"", []formPart{labelled}, both},
		"of a form":                      {wrong, []formPart{plain}, both},
		"of the second of two parts":     {"", []formPart{fine, labelled}, both},
		"of the first of two parts":      {"", []formPart{labelled, fine}, both},
		"of a form with several files":   {digestOf("content"), []formPart{plain, plain}, []string{"a single file"}},
		"of a form, other than a part's": {digestOf("content"), []formPart{labelled}, []string{"differs"}},
	} {
		c.digest(k.header, k.parts).Want(400, k.says...)
		c.wantNothing(what)
	}
}

func TestMalformedDigestIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, header := range []string{"sha-256=abc", "sha-256=::", "sha-256=:abc:", "sha-256=:AAAA:", "sha-256=", "sha-256", "x", digestOf("x") + ",", strings.TrimSuffix(digestOf("x"), ":")} {
		c.post("file=x", "x", "Repr-Digest", header).Want(400)
		c.wantNoneCreated(header)
		c.form("", []formPart{aFile("file", "x", "1", "Repr-Digest", header)}).Want(400)
		c.wantNothing(header)
	}
}
