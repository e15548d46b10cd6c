package upload_test

import (
	"crypto/sha256"
	"encoding/base64"
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

// TestFilesOfAFormAreFound is about which parts are files; wire's tests say how a name is read and cleaned.
func TestFilesOfAFormAreFound(t *testing.T) {
	t.Parallel()
	c := begin(t)
	text := func(field, content string) formPart { return formPart{`name="` + field + `"`, nil, content} }
	type contents = map[string]string // by name
	for what, k := range map[string]struct {
		query string
		parts []formPart
		want  contents
	}{
		"a file of 0 bytes": {parts: []formPart{aFile("empty", "")}, want: contents{"empty": ""}},
		"fields before and between": {
			parts: []formPart{text("x", "no"), aFile("e", "1"), text("file2", "no"), {
				disposition: "name=other; filename=f",
				content:     "2",
			}},
			want: contents{"e": "1", "f": "2"},
		},
		"a part named file without a file name": {
			parts: []formPart{text("file", "plain")},
			want:  contents{"file": "plain"},
		},
		"one that the query names": {
			query: "file=a.txt",
			parts: []formPart{text("file", "plain")},
			want:  contents{"a.txt": "plain"},
		},
		"several files, which the query cannot name": {
			query: "file=ignored", parts: []formPart{aFile("h", "1"), aFile("i", "2")}, want: contents{
				"h": "1",
				"i": "2",
			},
		},
		"a file and an input without a choice": {
			parts: []formPart{aFile("", ""), aFile("j", "1")},
			want:  contents{"j": "1"},
		},
		"an impossible name": {parts: []formPart{aFile("..", "1")}, want: contents{"file": "1"}},
		"names that are no UTF-8": {
			parts: []formPart{aFile("a\xe9", "1"), {disposition: "name=file; filename=\x80 b", content: "2"}},
			want:  contents{"aé": "1", "€ b": "2"},
		},
		"two files of one name": {parts: []formPart{aFile("m", "1"), aFile("m", "1")}, want: contents{"m": "1"}},
	} {
		before := len(c.names())
		e := c.form(k.query, k.parts).Want(200)
		got := contents{}
		for _, f := range e.Files[:len(e.Files)-before] {
			got[f.Name] = c.Get(f.LinkURL)
			expect.Equal(t, what+", the length", f.Length, int64(len(got[f.Name])))
		}
		expect.Equal(t, what, got, k.want)
	}
}

func TestMalformedBodyStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const form = "multipart/form-data; boundary=b"
	const secret = "\r\ncontent\r\n--b\r\nContent-Disposition: form-data; name*=x''password\r\n\r\nsecret\r\n--b--\r\n"
	refuses := func(query, kind, body string, status int, says string) {
		t.Helper()
		if c.InStack() && (len(body) > 10<<20 || strings.Contains(query, "%zz")) {
			return // the gateway takes no such body, and parses queries
		}
		c.post(query, body, "Content-Type", kind).Want(status, says)
		c.wantNothing(says)
	}
	refuses("", "application/json", `{"file":"a"}`, 400, "file")
	refuses("", "multipart/form-data; boundary", "--b--", 400, "boundary")
	refuses("", "multipart/mixed; boundary=b", "--b--", 415, "multipart/form-data")
	refuses("file=..", "", "content", 400, "file name")
	refuses("file=a&x=%zz", "", "content", 400, "query")
	for body, says := range map[string]string{
		"": "body", "just text": "body", "--b--\r\n": "no file",
		"--b\r\n\r\na part without a disposition\r\n--b--\r\n":                          "no file",
		"--b\r\nthis is no header\r\n\r\ncontent\r\n--b--\r\n":                          "body",
		"--b\r\nX: an endless header" + strings.Repeat("x", 11<<20):                     "body",
		"--b\r\n" + strings.Repeat("X: many headers\r\n", 20_000) + "\r\n\r\n--b--\r\n": "body",

		"--b\r\nContent-Disposition: form-data; filename*=Shift_JIS''%83\r\n\r\ncontent\r\n--b--\r\n": "Content-Disposition",
		"--b\r\nContent-Disposition: form-data; name=file; filename=a\r\n" + secret:                   "Content-Disposition",
	} {
		refuses("", form, body, 400, says)
	}
	for what, parts := range map[string][]formPart{
		"only fields": {{`name="x"`, nil, "1"}}, "no file chosen": {aFile("", "")},
		"too many files": slices.Repeat(someFiles("a"), files.MaxFiles+1), "too many fields": slices.Repeat([]formPart{{
			disposition: `name="x"`,
			content:     "1",
		}}, 201),
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
		"without recipients": {query: "notify=1", files: 20, links: 20},
		"with a recipient":   {query: "notify=1&m=bob@example.com", files: 16, notices: 16, links: 32},
		"with two recipients": {
			query:   "notify=1&m=bob@example.com&c=%2B393471234567",
			files:   12,
			notices: 24,
			links:   36,
		},
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
			c.wantCounts(map[string]int{
				"files#zoe": k.files,
				"outbox#":   k.notices,
				"link#":     k.links,
				"receipt#":  k.files,
				"event#":    k.files,
			})
		})
	}
}

func TestRawBodyIsAFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	tomorrow := c.Clock.Now().Add(24 * time.Hour).In(time.FixedZone("", 2*60*60)).Format(time.RFC3339)
	stores := func(request, kind, content, name string) {
		t.Helper()
		f := c.Ask(request, content, "Content-Type", kind).Want(200).File()
		if f.Name != name || f.Length != int64(len(content)) || c.Get(f.LinkURL) != content {
			t.Errorf("%s stored %+v, want %q with %q", request, f, name, content)
		}
	}
	stores("POST /upload?file=a.txt", "", "content", "a.txt")
	stores("POST /upload?file=c.txt", "text/plain", "", "c.txt")
	stores("POST /upload?file=i.json", "application/json", "{}", "i.json")
	stores("POST /upload?file=j.txt", "application/x-www-form-urlencoded", "a=b", "j.txt")
	stores("PUT /upload?file=f+%F0%9F%8E%89%20g.txt", "", "content", "f 🎉 g.txt")
	stores("PUT /upload?file=a;b;.txt&expires="+tomorrow, "", "semicolons, and a time with an offset", "a;b;.txt")
	stores("PUT /upload?lang=de&amp;file=k.txt&amp%3Bexpires=7d", "", "ampersands of HTML", "k.txt")
}

// TestTheTypeOfAPartAndOfASessionIsKept; wire's tests say what can be read of one.
func TestTheTypeOfAPartAndOfASessionIsKept(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const stated = "TEXT/HTML; charset=ISO-8859-1; x=y"
	s := c.begins(`{"name":"note","length":5,"type":"` + stated + `"}`)
	c.sendAll(s, "hello")
	form := c.form("", []formPart{aFile("note", "hello", "Content-Type", stated)})
	for _, a := range []apitest.Answer{c.complete(s, ""), form} {
		c.Send("GET "+a.Want(200).File().LinkURL, "").
			Want(200).
			WantHeaders("Content-Type", "text/html; charset=ISO-8859-1")
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
			expect.Equal(
				t,
				what+" the files",
				c.Send("GET "+f.LinkURL, "", "Ferry-Link-Password", "open sesame").Code,
				302,
			)
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
	one := []formPart{aFile("x", "content")}
	ofPart := []formPart{aFile("x", "content", "Repr-Digest", want)}
	for what, a := range map[string]apitest.Answer{
		"of a raw body": c.digest(want, nil), "of a part": c.digest("", ofPart),
		"of a form with one file": c.digest(want, one), "of a form, and of its part": c.digest(want, ofPart),
	} {
		got := c.Send("GET "+a.Want(200).File().LinkURL, "").Header.Get("Repr-Digest")
		expect.Equal(t, what, got, want)
	}
}

func TestWrongDigestStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	wrong := digestOf("another content")
	plain, labelled := aFile("x", "content"), aFile("x", "content", "Repr-Digest", wrong)
	fine := aFile("y", "fine")
	differs := fmt.Sprintf("is %x, but %x", sha256.Sum256([]byte("content")), sha256.Sum256([]byte("another content")))
	for what, k := range map[string]struct {
		header string
		parts  []formPart // nil for a raw body
		says   string
	}{
		"of a raw body":              {header: wrong, says: differs},
		"of a form":                  {header: wrong, parts: []formPart{plain}, says: differs},
		"of the second of two parts": {parts: []formPart{fine, labelled}, says: differs},
		"of the first of two parts":  {parts: []formPart{labelled, fine}, says: differs},
		"of a form with several files": {
			header: digestOf("content"),
			parts:  []formPart{plain, plain},
			says:   "a single file",
		},
		"of a form, other than a part's": {header: digestOf("content"), parts: []formPart{labelled}, says: "differs"},
		"that cannot be read, of a part": {parts: []formPart{aFile("x", "1", "Repr-Digest", "x")}, says: "RFC 9530"},
	} {
		c.digest(k.header, k.parts).Want(400, k.says)
		c.wantNothing(what)
	}
	c.Calls.Reset()
	c.digest("x", nil).Want(400, "RFC 9530")
	c.wantNoneCreated("a digest that cannot be read")
}
