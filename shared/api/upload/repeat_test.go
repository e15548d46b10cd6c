package upload_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
)

// keyed sends a raw body with the key k.
func (c caller) keyed(query, content string, headers ...string) *http.Response {
	c.Helper()
	return c.post(query, "", strings.NewReader(content), append(headers, files.KeyHeader, "k")...)
}

// wantFiles fails unless a user's area has n files.
func (c caller) wantFiles(owner string, n int) {
	c.Helper()
	if got := len(c.Partitions("files#" + owner + " ")); got != n {
		c.Errorf("%s has %d files, want %d", owner, got, n)
	}
	if got := len(c.Partitions("link#")); got != n {
		c.Errorf("there are %d links, want %d", got, n)
	}
	if got := len(c.Server.Files()); got != n {
		c.Errorf("there are %d objects, want %d", got, n)
	}
}

func TestRepeatedUploadIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.Decode(c.keyed("file=a.txt&m=carla@example.com&i=hello&notify=1", "hello"), 200)
	for range 3 {
		again := c.Decode(c.keyed("m=carla@example.com&i=hello&notify=1&file=%61.txt", "hello"), 200)
		if !slices.Equal(again.Files, first.Files) || again.User != first.User {
			t.Errorf("the answer is %+v, the first was %+v", again, first)
		}
	}
	for item, want := range map[string]int{"files#ann": 1, "link#": 2, "outbox#": 1, "receipt#": 1} {
		if n := len(c.Partitions(item)); n != want {
			t.Errorf("there are %d %s, want %d", n, item, want)
		}
	}
	if got := c.get(first.Files[0].LinkURL); got != "hello" {
		t.Errorf("the link gives %q", got)
	}
	forBob := c.Decode(c.post("file=a&d=bob", "", strings.NewReader("hello"), files.KeyHeader, "another"), 200).Files
	again := c.Decode(c.post("file=a&d=bob", "", strings.NewReader("hello"), files.KeyHeader, "another"), 200).Files
	if len(again) != 1 || !slices.Equal(again, forBob) {
		t.Errorf("the repeat for bob lists %+v, want %+v", again, forBob)
	}
}

func TestRepeatListsItsFilesAmongManyNewerOnes(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.Decode(c.keyed("file=a", "hello"), 200).Files[0]
	c.Fill(c.bearer, 100)
	resp := c.keyed("file=a", "hello")
	again, link := c.Decode(resp, 200).Files, resp.Header.Get("Link")
	if len(again) != 101 || again[100] != first || !strings.Contains(link, `after=2>; rel="next"`) {
		t.Errorf("%d files are listed, the last %+v, want %+v; Link is %q", len(again), again[len(again)-1], first, link)
	}
}

func TestRepeatedFormMayHaveAnotherBoundary(t *testing.T) {
	t.Parallel()
	c := begin(t)
	send := func(parts ...formPart) *http.Response {
		kind, body := encode(parts...) // with a random boundary
		return c.post("", kind, strings.NewReader(body), files.KeyHeader, "k")
	}
	a, b := aFile("file", "a", "one"), aFile("file", "b", "two")
	first := c.Decode(send(a, b), 200).Files
	if again := c.Decode(send(a, b), 200).Files; !slices.Equal(again, first) || len(first) != 2 {
		t.Errorf("the answer is %+v, the first was %+v", again, first)
	}
	for what, parts := range map[string][]formPart{
		"one file less":   {a},
		"one file more":   {a, b, a},
		"another order":   {b, a},
		"another name":    {a, aFile("file", "c", "two")},
		"another content": {a, aFile("file", "b", "TWO")},
		"another length":  {a, aFile("file", "b", "two ")},
	} {
		c.wantStatus(what, send(parts...), 409)
	}
	c.wantFiles("ann", 2)
}

func TestIdempotencyKeyIsForOneUpload(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.Calls.Reset()
	for what, resp := range map[string]*http.Response{
		"another name":        c.keyed("file=b", "hello"),
		"another body":        c.keyed("file=a", "hallo"),
		"a longer body":       c.keyed("file=a", "hello!"),
		"no body":             c.keyed("file=a", ""),
		"another destination": c.keyed("file=a&d=bob", "hello"),
		"a recipient":         c.keyed("file=a&m=carla@example.com", "hello"),
		"another type":        c.keyed("file=a", "hello", "Content-Type", "text/plain"),
		"another method":      c.Request("PUT", "/upload?file=a", strings.NewReader("hello"), "Authorization", "Bearer "+c.bearer, files.KeyHeader, "k"),
		"a digest":            c.keyed("file=a", "hello", "Repr-Digest", "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:"),
	} {
		c.wantStatus(what, resp, 409)
		if after := resp.Header.Get("Retry-After"); after != "" {
			t.Errorf("%s: Retry-After is %s", what, after)
		}
	}
	c.wantNoneCreated("a key used twice")
	c.wantFiles("ann", 1)
	c.wantStatus("a bad key", c.post("file=a", "", strings.NewReader("hello"), files.KeyHeader, "a b"), 400)
	c.Decode(c.as("bob").keyed("file=a", "bob's"), 200)
}

func TestConcurrentRepeatIsToldToRetry(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var meanwhile *http.Response
	c.Calls.Before("blob.Create", func() error {
		c.Calls.Before("blob.Create", nil)
		meanwhile = c.keyed("file=a", "hello")
		return nil
	})
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.wantStatus("a concurrent repeat", meanwhile, 409)
	if got := meanwhile.Header.Get("Retry-After"); got != "5" {
		t.Errorf("Retry-After is %q", got)
	}
	c.wantFiles("ann", 1)
}

func TestFailedUploadCanBeRepeated(t *testing.T) {
	t.Parallel()
	for what, call := range map[string]string{"its id": "table.Update", "its bytes": "blob.Create", "its records": "table.Write"} {
		t.Run("failed at "+what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			left := 0
			if call == "table.Write" {
				left = 1 // the claim
			}
			c.Calls.Before(call, func() error {
				if left--; left == -1 {
					return fmt.Errorf("the store is gone")
				}
				return nil
			})
			c.wantStatus("the first", c.keyed("file=a", "hello"), 500)
			c.Decode(c.keyed("file=a", "hello"), 200)
			if got := c.names(); len(got) != 1 {
				t.Errorf("there are %q", got)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		c := begin(t)
		c.wantStatus("an unknown user", c.keyed("file=a&d=nobody", "hello"), 400)
		c.wantStatus("another digest", c.keyed("file=a", "hello", "Repr-Digest", digestOf("another")), 400)
		c.Decode(c.keyed("file=a", "hello"), 200)
	})
}

func TestInterruptedUploadCanBeRepeated(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.cutOff(files.KeyHeader+": k\r\nContent-Length: 5\r\n", "he", true)
	c.waitForLog(1)
	c.wantNothing("cut off")
	resp := c.Request("POST", "/upload?file=x", strings.NewReader("hello"), "Authorization", "Bearer "+c.bearer, files.KeyHeader, "k")
	c.Decode(resp, 200)
	c.wantFiles("ann", 1)
}

// TestUploadThatLostItsLeaseStoresNothing delays the first upload beyond its lease.
func TestUploadThatLostItsLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	for what, most := range map[string]int64{"without a quota": 0, "under a quota": 100} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.AddUser("eve", c.password, quota(most))
			c = c.as("eve")
			c.Calls.Before("blob.Create", func() error {
				c.Calls.Before("blob.Create", nil)
				c.Clock.Advance(time.Minute)
				c.Decode(c.keyed("file=a", "hello"), 200)
				return nil
			})
			c.wantStatus("the first", c.keyed("file=a", "hello"), 409)
			c.wantFiles("eve", 1)
			u, err := c.Users.Get(t.Context(), "eve")
			if err != nil || most > 0 && u.Used != 5 {
				t.Errorf("%d bytes are used, %v", u.Used, err)
			}
		})
	}
}

// wantGone checks that an answer says of file 1 that it was deleted.
func (c caller) wantGone(when string, resp *http.Response) {
	c.Helper()
	text := resp.Header.Get("Ferry-Error")
	if e := c.Decode(resp, 410); e.Status != 410 || e.Description != "Gone" || !strings.Contains(text, "file 1 was deleted") {
		c.Errorf("%s: %+v: %s", when, e, text)
	}
}

func TestARepeatOfAnUploadWhoseFileWasDeletedIsToldSo(t *testing.T) {
	t.Parallel()
	const form, two = "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=f; filename=1\r\n\r\n1\r\n" +
		"--b\r\nContent-Disposition: form-data; name=f; filename=2\r\n\r\n2\r\n--b--\r\n"
	for what, k := range map[string]struct{ query, owner, kind, body, accept string }{
		"into the caller's area": {"file=a", "ann", "", "hello", "*/*"},
		"as text":                {"file=a", "ann", "", "hello", "text/plain"},
		"as a page":              {"file=a", "ann", "", "hello", "text/html"},
		"into another's area":    {"file=a&d=bob", "bob", "", "hello", "*/*"},
		"one of two files":       {"", "ann", form, two, "*/*"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			owner := c.as(k.owner)
			repeat := func() *http.Response {
				return c.post(k.query, k.kind, strings.NewReader(k.body), files.KeyHeader, "k", "Accept", k.accept)
			}
			first := repeat()
			owner.call("DELETE", "/files/1", "", 200, nil)
			owner.post("file=b", "", strings.NewReader("another"))
			c.wantGone("in the backup area", repeat())
			owner.call("POST", "/files/1/restore", "", 200, nil)
			if again := repeat(); again.StatusCode != 200 || k.accept == "text/plain" && c.Text(again) != c.Text(first) {
				t.Errorf("after it was restored: status %d", again.StatusCode)
			}
			expired := table.Update(files.Key(blob.Files, k.owner, 1)).Set("expires", time.Now().Unix())
			must(t, c.Data.Ports.Table.Write(t.Context(), expired))
			c.wantGone("expired", repeat())
		})
	}
}
