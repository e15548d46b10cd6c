package apitest_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
	"ferry/shared/users"
)

// TestEachCallMayFail makes each call to the stores fail that a request of the journey makes,
// one at a time and on a copy of the data. The answer is a 500 without details, or the usual
// one if the call only cleaned up; the failed request can be repeated; and once everything has
// expired, nothing is left over.
func TestEachCallMayFail(t *testing.T) {
	t.Parallel()
	const shares = 2 // of the steps, side by side
	for share := range shares {
		t.Run(fmt.Sprint("share ", share), func(t *testing.T) {
			t.Parallel()
			i := 0
			w := beginFailing(t, t.TempDir(), 0)
			w.run(func(take func()) {
				w.pass(time.Second)
				if w.matters() {
					if i++; i%shares == share {
						w.failEach()
					}
				}
				take()
			})
		})
	}
}

// failing is a walk on data that can be copied.
type failing struct {
	*walk
	t    *testing.T
	age  time.Duration   // of the data
	sent int             // receipts, before this step
	seen map[string]bool // kinds of requests
}

var errFails = errors.New("the text of a failure")

// values are what requests of one kind differ in.
var values = regexp.MustCompile(`[=:][^&,}\n]*`)

// matters reports whether the step is a request that succeeds, and the first of its kind.
func (w *failing) matters() bool {
	request, ok := w.step.do.(string)
	kind := values.ReplaceAllString(request+" "+w.step.headers+" "+w.step.body, "")
	if !ok || w.step.status >= 400 || w.seen[kind] {
		return false
	}
	w.seen[kind] = true
	return true
}

func beginFailing(t *testing.T, dir string, age time.Duration) *failing {
	t.Helper()
	s := apitest.Open(t, dir, public)
	s.CountAtOnce()
	w := &failing{walk: begin(s), t: t, seen: map[string]bool{}}
	w.pass = func(d time.Duration) {
		w.age += d
		s.Clock.Advance(d)
	}
	w.pass(age)
	w.sweep = func() {
		_, err := s.Service.Sweep(s.Context())
		check(t, err)
	}
	return w
}

// copied returns a service on a copy of the data, at the same step.
func (w *failing) copied() *failing {
	w.Helper()
	dir := w.t.TempDir()
	check(w, os.CopyFS(dir, os.DirFS(w.Dir)))
	check(w, os.RemoveAll(filepath.Join(dir, "table.sqlite-shm")))
	c := beginFailing(w.t, dir, w.age)
	c.step, c.vars, c.sent = w.step, maps.Clone(w.vars), w.sent
	return c
}

// resumable matches the requests that change a session.
var resumable = regexp.MustCompile(`^(POST /v1/uploads$|PUT |POST .*/complete$|DELETE /v1/uploads/)`)

// failEach makes each call of a step fail. Sessions may also be abandoned after a failure, and
// the answer of a call may be lost.
func (w *failing) failEach() {
	w.sent = w.receiptsSent()
	w.fail(errFails, true)
	if resumable.MatchString(w.step.do.(string)) {
		w.fail(errFails, false)
		w.fail(apitest.ErrLost, true)
	}
}

// fail makes each call of the step fail in turn, and then repeats the request, or not.
func (w *failing) fail(err error, again bool) {
	for n := 1; ; n++ {
		c := w.copied()
		name := c.failAt(n, err)
		resp := c.try()
		c.failAt(0, nil)
		if *name == "" { // there are fewer than n calls
			c.Close()
			return
		}
		what := fmt.Sprintf("%s, without call %d, %s,", w.step.name, n, *name)
		lost := err == apitest.ErrLost
		if done := lost && resp.StatusCode == w.step.status || c.checkFailed(what, *name, resp); !done && again {
			gone := lost && resp.Request.Method == "DELETE" // the first try had ended the session
			if resp := c.try(); resp.StatusCode != w.step.status && !(gone && resp.StatusCode == 404) {
				c.Errorf("%s and then with it, the status is %d: %s", what, resp.StatusCode, c.Text(resp))
			}
		}
		c.sweepClean(what)
		c.Close()
	}
}

func (w *failing) try() *http.Response {
	return w.send(w.request(w.step.do.(string), w.step.headers, w.step.body))
}

// failAt makes the n-th call to the stores from now on fail, and stores its name when it
// happenw. 0 ends that.
func (w *failing) failAt(n int, err error) (name *string) {
	name = new(string)
	var left atomic.Int64 // a check makes several calls at once
	left.Store(int64(n))
	for _, call := range []string{
		"table.Get", "table.GetMany", "table.Query", "table.Write", "table.Update",
		"blob.Create", "blob.Open", "blob.Copy", "blob.Delete",
		"parts.Begin", "parts.Sign", "parts.Write", "parts.List", "parts.Complete", "parts.Abort",
	} {
		w.Calls.Before(call, func() error {
			if left.Add(-1) != 0 {
				return nil
			}
			*name = call
			return err
		})
	}
	return name
}

// checkFailed checks the answer to a request with a failed call, and reports whether that
// call only cleaned up.
func (w *failing) checkFailed(what, call string, resp *http.Response) (done bool) {
	w.Helper()
	clearing := call == "blob.Delete" ||
		call == "parts.Abort" ||
		call == "table.Write" && strings.HasPrefix(resp.Request.URL.Path, "/v1/download/")
	if resp.StatusCode == 500 && strings.Contains(resp.Request.URL.RawQuery, "&claim=") {
		clearing = false // without the download that it takes, a claim gets nothing
	}
	if strings.HasPrefix(resp.Request.URL.Path, "/v1/files/") &&
		(call == "blob.Copy" || call == "table.Write" && resp.StatusCode == 200) {
		clearing = true // the bytes follow the record of a moved file
	}
	token := resp.Request.Header.Get("Authorization") + resp.Request.Header.Get("Cookie")
	if call == "table.Write" && resp.StatusCode == 200 && strings.Contains(token, "ferry_") {
		clearing = true // the use of a token is recorded with the next request
	}
	if path := resp.Request.URL.Path; (path == "/l" || path == "/files") && resp.StatusCode == 200 {
		clearing = true // a page lacks its preview, or the unfinished uploads
	}
	if body := w.Text(resp); strings.Contains(body+fmt.Sprint(resp.Header), "failure") {
		w.Errorf("%s the answer is %v %s", what, resp.Header, body)
	}
	if strings.Contains(w.Log.String(), "panic: ") {
		w.Errorf("%s it panics", what)
	}
	failed := map[string]int{"/v1/health": 503}[resp.Request.URL.Path]
	if clearing && resp.StatusCode != w.step.status || !clearing && resp.StatusCode != cmp.Or(failed, 500) {
		w.Errorf("%s the status is %d", what, resp.StatusCode)
	}
	return clearing
}

// sweepClean sweeps after everything left over has expired, and checks the result.
func (w *failing) sweepClean(what string) {
	w.Helper()
	w.Clock.Advance(blob.PartsLife + 25*time.Hour)
	if r, err := w.Service.Sweep(w.Context()); err != nil || r.Failed != 0 {
		w.Errorf("%s the sweep did %+v, %v", what, r, err)
	}
	_, err := w.Data.Table.DeleteExpired(w.Context(), w.Clock.Now())
	check(w, err)
	none := func(int64) {} // a sweep would leave what is left over until its day
	repair := files.Check{
		Service: w.Service.Files(), Repair: true,
		Found: func(files.Finding) {}, Expect: none, Done: none,
	}
	if _, err := repair.Run(w.Context()); err != nil {
		w.Errorf("%s the repair gave %v", what, err)
	}
	w.wantClean(what)
}

// wantClean checks that each record has its object, links and request for a receipt, that
// nothing else is left, not even of sessions, and that under a quota the usage is the sum of
// the files.
func (w *failing) wantClean(what string) {
	w.Helper()
	records, linked, used := w.records(), 0, map[string]int64{}
	for _, f := range records {
		linked += 1 + len(f.Recipients)
		used[f.Owner] += f.Length
	}
	objects, links := len(w.Objects(blob.Files))+len(w.Objects(blob.Backup)), len(w.Partitions("link#"))
	if objects != len(records) || links != linked || len(w.Partitions("reserved#")) != 0 {
		w.Errorf("%s there are %d records, %d objects, %d links for %d", what, len(records), objects, links, linked)
	}
	if n := w.receiptsSent(); n != w.sent && !(n == w.sent+1 && strings.HasPrefix(what, "first download")) {
		w.Errorf("%s %d requests for a receipt are gone, want %d", what, n, w.sent)
	}
	if items, kept := w.Partitions("upload"), w.Sessions(); len(items) != 0 || len(kept) != 0 {
		w.Errorf("%s these sessions are left: %v and, in the store, %v", what, items, kept)
	}
	for _, name := range []string{"alice", "quentin"} {
		if u, err := w.Users.Get(w.Context(), name); err == nil && u.Used != used[name] {
			w.Errorf("%s the usage of %s is %d bytes, want %d", what, name, u.Used, used[name])
		}
	}
}

// records returns the records of all files.
func (w *failing) records() (all []*files.Listed) {
	w.Helper()
	for key := range w.Partitions("users ") {
		for _, area := range blob.Areas() {
			page, err := w.Service.Files().List(
				w.Context(),
				users.User{Name: strings.TrimPrefix(key, "users ")},
				area,
				0,
				100,
			)
			check(w, err)
			all = append(all, page.Files...)
		}
	}
	return all
}

// receiptsSent returns how many records no longer have their request for a receipt.
func (w *failing) receiptsSent() int {
	w.Helper()
	asked := slices.DeleteFunc(w.records(), func(f *files.Listed) bool { return !f.Notify })
	return len(asked) - len(w.Partitions("receipt#"))
}
