package upload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/table"
)

// keyed uploads a raw body with the key k.
func (c caller) keyed(query, content string, headers ...string) apitest.Answer {
	c.Helper()
	return c.post(query, content, append(headers, files.KeyHeader, "k")...)
}

// wantFiles fails unless a user's area has n files.
func (c caller) wantFiles(owner string, n int) {
	c.Helper()
	c.wantCounts(map[string]int{"files#" + owner + " ": n, "link#": n})
	expect.Equal(c.TB, "objects", len(c.Files()), n)
}

func TestRepeatedUploadIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.keyed("file=a.txt&m=carla@example.com&i=hello&notify=1", "hello").Want(200)
	for range 3 {
		again := c.keyed("m=carla@example.com&i=hello&notify=1&file=%61.txt", "hello").Want(200)
		expect.Equal(t, "the files of a repeat", again.Files, first.Files)
		expect.Equal(t, "its user", again.User, first.User)
	}
	c.wantCounts(map[string]int{"files#ann": 1, "link#": 2, "outbox#": 1, "receipt#": 1})
	expect.Equal(t, "the link", c.Get(first.File().LinkURL), "hello")
}

func TestRepeatListsItsFilesAmongManyNewerOnes(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.keyed("file=a", "hello").Want(200).File()
	c.Fill(100)
	a := c.keyed("file=a", "hello").Want(200).WantHeaders("Ferry-Files", "1")
	if len(a.Files) != 101 || a.Files[100] != first || !strings.Contains(a.Header.Get("Link"), `after=2>; rel="next"`) {
		t.Errorf("%d files are listed, the last %+v, want %+v; Link is %q",
			len(a.Files), a.Files[len(a.Files)-1], first, a.Header.Get("Link"))
	}
}

func TestRepeatedFormMayHaveAnotherBoundary(t *testing.T) {
	t.Parallel()
	c := begin(t)
	send := func(parts ...formPart) apitest.Answer { return c.form("", parts, files.KeyHeader, "k") } // with a random boundary
	a, b := aFile("a", "one"), aFile("b", "two")
	first := send(a, b).Want(200).Files
	if again := send(a, b).Want(200).Files; !slices.Equal(again, first) || len(first) != 2 {
		t.Errorf("the answer is %+v, the first was %+v", again, first)
	}
	for _, parts := range [][]formPart{
		{a}, {a, b, a}, {b, a}, {a, aFile("c", "two")}, {a, aFile("b", "TWO")}, {a, aFile("b", "two ")},
	} {
		send(parts...).Want(409)
	}
	c.wantFiles("ann", 2)
}

func TestIdempotencyKeyIsForOneUpload(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.keyed("file=a", "hello").Want(200)
	c.Calls.Reset()
	for what, a := range map[string]apitest.Answer{
		"another name":        c.keyed("file=b", "hello"),
		"another body":        c.keyed("file=a", "hallo"),
		"a longer body":       c.keyed("file=a", "hello!"),
		"another destination": c.keyed("file=a&d=bob", "hello"),
		"another type":        c.keyed("file=a", "hello", "Content-Type", "text/plain"),
		"another method":      c.Ask("PUT /upload?file=a", "hello", files.KeyHeader, "k"),
		"a digest":            c.keyed("file=a", "hello", "Repr-Digest", digestOf("hello")),
	} {
		expect.Equal(t, what, a.Want(409).Header.Get("Retry-After"), "")
	}
	c.wantNoneCreated("a key used twice")
	c.wantFiles("ann", 1)
	c.post("file=a", "hello", files.KeyHeader, "a b").Want(400)
	c.as("bob").keyed("file=a", "bob's").Want(200)
}

func TestConcurrentRepeatIsToldToRetry(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Calls.Before("blob.Create", func() error {
		c.Calls.Before("blob.Create", nil)
		c.keyed("file=a", "hello").Want(409).WantHeaders("Retry-After", "5")
		return nil
	})
	c.keyed("file=a", "hello").Want(200)
	c.wantFiles("ann", 1)
}

func TestInterruptedUploadCanBeRepeated(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.cutOff(files.KeyHeader+": k\r\nContent-Length: 5\r\n", "he", true)
	c.waitForLog()
	c.wantNothing("cut off")
	c.keyed("file=x", "hello").Want(200)
	c.wantFiles("ann", 1)
}

// TestUploadThatLostItsLeaseStoresNothing delays the first upload beyond its lease.
func TestUploadThatLostItsLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	eve := caller{apitest.New(t).Add("eve", apitest.Quota(100))}
	eve.Calls.Before("blob.Create", func() error {
		eve.Calls.Before("blob.Create", nil)
		eve.Clock.Advance(time.Minute)
		eve.keyed("file=a", "hello").Want(200)
		return nil
	})
	eve.keyed("file=a", "hello").Want(409)
	eve.wantFiles("eve", 1)
	eve.wantUsed("eve", 5)
}

func TestARepeatOfAnUploadWhoseFileWasDeletedIsToldSo(t *testing.T) {
	t.Parallel()
	const form, two = "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=f; filename=1\r\n\r\n1\r\n" +
		"--b\r\nContent-Disposition: form-data; name=f; filename=2\r\n\r\n2\r\n--b--\r\n"
	for what, k := range map[string]struct{ query, owner, kind, body, accept string }{
		"into the caller's area": {query: "file=a", owner: "ann", body: "hello", accept: "*/*"},
		"as text":                {query: "file=a", owner: "ann", body: "hello", accept: "text/plain"},
		"into another's area":    {query: "file=a&d=bob", owner: "bob", body: "hello", accept: "*/*"},
		"one of two files":       {owner: "ann", kind: form, body: two, accept: "*/*"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			owner := c.as(k.owner)
			repeat := func() apitest.Answer {
				return c.keyed(k.query, k.body, "Content-Type", k.kind, "Accept", k.accept)
			}
			first := repeat().Want(200)
			stored := owner.Ask("GET /download/list", "").Want(200).Files // newest first
			id := stored[len(stored)-1].ID                                // a call that was retried may have taken 1
			gone := fmt.Sprintf("file %d has been deleted", id)
			owner.Ask(fmt.Sprint("DELETE /files/", id), "").Want(200)
			owner.post("file=b", "another").Want(200)
			repeat().Want(410, gone)
			owner.Ask(fmt.Sprintf("POST /files/%d/restore", id), "").Want(200)
			if again := repeat().Want(200); k.accept == "text/plain" {
				expect.Equal(t, "after it was restored", again.Text, first.Text)
			}
			expired := table.Update(files.Key(blob.Files, k.owner, id)).Set("expires", c.Clock.Now().Unix())
			expect.NoErr(t, c.Data.Ports.Table.Write(t.Context(), expired))
			repeat().Want(410, gone)
		})
	}
}

func TestARepeatDoesNotIgnoreThatItHasAPassword(t *testing.T) {
	t.Parallel()
	c := begin(t)
	header := []string{"Ferry-Link-Password", "open sesame"}
	c.keyed("file=a", "hello").Want(200)
	c.keyed("file=a", "hello", header...).Want(409)
	password, file := formPart{disposition: `name="password"`, content: "open sesame"}, aFile("b", "one")
	c.form("", []formPart{file}, files.KeyHeader, "form").Want(200)
	c.form("", []formPart{password, file}, files.KeyHeader, "form").Want(409)
	for _, k := range []struct {
		key     string
		headers []string
		parts   []formPart
	}{{key: "both", headers: header, parts: []formPart{file}}, {key: "another", parts: []formPart{password, file}}} {
		for range 2 {
			link := c.form("", k.parts, append(k.headers, files.KeyHeader, k.key)...).Want(200).File().LinkURL
			c.Send("GET "+link, "").Want(401)
		}
	}
}
