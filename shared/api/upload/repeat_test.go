package upload_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/auth"
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
	const query = "file=a.txt&m=carla@example.com&i=hello&notify=1"
	first := c.Decode(c.keyed(query, "hello"), 200)
	for range 3 {
		again := c.Decode(c.keyed(query, "hello"), 200)
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
}

func TestRepeatIntoAnotherAreaListsOnlyItsFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.Decode(c.keyed("file=a&d=bob", "hello"), 200)
	c.as("bob").post("file=own", "", strings.NewReader("bob's"))
	again := c.Decode(c.keyed("file=a&d=bob", "hello"), 200)
	if len(again.Files) != 1 || again.Files[0] != first.Files[0] {
		t.Errorf("the answer is %+v, the first was %+v", again.Files, first.Files)
	}
	c.wantFiles("bob", 2)
}

func TestRepeatListsItsFilesAmongManyNewerOnes(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first := c.Decode(c.keyed("file=a", "hello"), 200).Files[0]
	c.Fill(c.bearer, 100)
	again := c.Decode(c.keyed("file=a", "hello"), 200).Files
	if len(again) != 101 || again[100] != first {
		t.Errorf("%d files are listed, the last %+v, want %+v", len(again), again[len(again)-1], first)
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
	c.Decode(c.as("bob").keyed("file=a", "bob's"), 200)
}

func TestRepeatMayReorderTheQuery(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Decode(c.keyed("file=a&lang=it", "hello"), 200)
	c.Decode(c.keyed("lang=it&file=%61", "hello"), 200)
	c.wantFiles("ann", 1)
}

func TestBadIdempotencyKeyStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, key := range []string{strings.Repeat("k", 256), "a b", "chiavè", ""} {
		c.wantStatus(key, c.post("file=a", "", strings.NewReader("hello"), files.KeyHeader, key), 400)
	}
	c.wantNothing("bad keys")
}

// TestConcurrentRepeatsStoreOneFile sends 20 uploads, and retries those that are told to.
func TestConcurrentRepeatsStoreOneFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var stored, conflicts atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				resp := c.keyed("file=a", "hello")
				if resp.StatusCode == http.StatusOK {
					stored.Add(1)
					return
				}
				if resp.StatusCode != http.StatusConflict || resp.Header.Get("Retry-After") == "" {
					t.Errorf("status %d, %q", resp.StatusCode, resp.Header)
					return
				}
				conflicts.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d were told to retry", conflicts.Load())
	if stored.Load() != 20 {
		t.Errorf("%d uploads succeeded", stored.Load())
	}
	c.wantFiles("ann", 1)
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
}

func TestRefusedUploadFreesItsKey(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.wantStatus("an unknown user", c.keyed("file=a&d=nobody", "hello"), 400)
	c.wantStatus("another digest", c.keyed("file=a", "hello", "Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:"), 400)
	c.Decode(c.keyed("file=a", "hello"), 200)
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

func TestInterruptedRepeatDoesNoHarm(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("the gateway sends no incomplete body")
	c.Decode(c.keyed("file=a", "hello"), 200)
	conn, err := net.Dial("tcp", c.HTTP.Listener.Addr().String())
	must(t, err)
	fmt.Fprintf(conn, "POST /v1/upload?file=a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: k\r\nContent-Length: 5\r\n\r\nhe", c.bearer)
	conn.Close()
	c.waitForLog(2)
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.wantFiles("ann", 1)
}

// TestCrashedUploadCanBeRepeatedAfterItsLease ends the service between claim and commit,
// without the cleanup after a failed request.
func TestCrashedUploadCanBeRepeatedAfterItsLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := beginIn(t, dir)
	died := make(chan struct{})
	c.Calls.Before("blob.Create", func() error {
		c.Calls.Before("table.Write", func() error { return fmt.Errorf("the process is dead") })
		close(died)
		return fmt.Errorf("the process is dead")
	})
	c.keyed("file=a", "hello")
	<-died
	c.Close()

	c = beginIn(t, dir)
	resp := c.keyed("file=a", "hello")
	c.wantStatus("within the lease", resp, 409)
	if resp.Header.Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", resp.Header.Get("Retry-After"))
	}
	c.Clock.Advance(31 * time.Second)
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.wantFiles("ann", 1)
}

// TestUploadThatLostItsLeaseStoresNothing delays the first upload beyond its lease.
func TestUploadThatLostItsLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	for what, quota := range map[string]int64{"without a quota": 0, "under a quota": 100} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.AddUser("eve", c.password, func(u *auth.User) { u.Quota = quota })
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
			if err != nil || quota > 0 && u.Used != 5 {
				t.Errorf("%d bytes are used, %v", u.Used, err)
			}
		})
	}
}

func TestIdempotencyKeyIsFreeAfterADay(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Decode(c.keyed("file=a", "hello"), 200)
	c.Clock.Advance(files.KeyMemory)
	c.bearer = c.Login(c.name, c.password)
	c.Decode(c.keyed("file=b", "another"), 200)
	c.wantFiles("ann", 2)
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
			move := func(method, path string) {
				c.Decode(c.Request(method, path, nil, "Authorization", "Bearer "+owner.bearer), 200)
			}
			first := repeat()
			move("DELETE", "/files/1")
			owner.post("file=b", "", strings.NewReader("another"))
			c.wantGone("in the backup area", repeat())
			move("POST", "/files/1/restore")
			if again := repeat(); again.StatusCode != 200 || k.accept == "text/plain" && c.Text(again) != c.Text(first) {
				t.Errorf("after it was restored: status %d", again.StatusCode)
			}
			expired := table.Update(files.Key(blob.Files, k.owner, 1)).Set("expires", time.Now().Unix())
			must(t, c.Data.Ports.Table.Write(t.Context(), expired))
			c.wantGone("expired", repeat())
		})
	}
}

func TestIdempotencyKeyIsStoredHashed(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.post("file=a", "", strings.NewReader("hello"), files.KeyHeader, "0123456789-key")
	for key, item := range c.Items() {
		if strings.Contains(key+item, "0123456789-key") {
			t.Errorf("the key is in %s", key)
		}
	}
	if strings.Contains(c.Log.String(), "0123456789-key") {
		t.Error("the key is in the log")
	}
	if n := len(c.Partitions("idem#ann#")); n != 1 {
		t.Errorf("%d keys are stored", n)
	}
}
