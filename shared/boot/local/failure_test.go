package local_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
)

// TestEachCallMayFail makes each of a request's calls to the stores fail in turn. The
// answer is a 500 without details, or a success if the call only cleaned up; and the
// failed request can be repeated.
func TestEachCallMayFail(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for what, request := range map[string]func(s failing) *http.Response{
		"login":  func(s failing) *http.Response { return s.ask("POST", "/auth/login", "", s.basic("alice")) },
		"token":  func(s failing) *http.Response { return s.ask("POST", "/oauth2/token", tokenForm, form) },
		"list":   func(s failing) *http.Response { return s.ask("GET", "/download/list", "", s.basic("alice")) },
		"revoke": func(s failing) *http.Response { return s.ask("POST", "/oauth2/revoke", "token=x", form) },
		"forget": func(s failing) *http.Response { return s.ask("GET", "/auth/forget?u=alice", "", "") },
		"first":  func(s failing) *http.Response { return s.ask("POST", "/auth/first", "", s.basic("new")) },
		"upload": func(s failing) *http.Response {
			return s.ask("POST", "/upload?file=a&m=bob@example.com&notify=1", "content", s.basic("alice"))
		},
		"upload with a key": func(s failing) *http.Response {
			return s.Request("POST", "/upload?file=a", strings.NewReader("content"), "Authorization", s.basic("alice"), "Idempotency-Key", "k")
		},
		"upload to another": func(s failing) *http.Response {
			return s.ask("POST", "/upload?file=a&d=new", "content", s.basic("alice"))
		},
		"delete":  func(s failing) *http.Response { return s.ask("DELETE", "/files/1", "", s.basic("alice")) },
		"restore": func(s failing) *http.Response { return s.ask("POST", "/files/2/restore", "", s.basic("alice")) },
		"file": func(s failing) *http.Response {
			return s.ask("GET", "/files/2?area=backup", "", s.basic("alice"))
		},
		"download": func(s failing) *http.Response { return s.ask("GET", s.link, "", "") },
		"change": func(s failing) *http.Response {
			return s.ask("POST", s.change+"&p="+s.pin+"&z=a+password+of+her+own", "", "")
		},
		"check of a change": func(s failing) *http.Response { return s.ask("POST", s.change+"&p="+s.pin, "", "") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			injection{errFails, true}.inTurn(t, beginFailing, request)
		})
	}
}

// TestEachCallOfASessionMayFail does the same with upload sessions.
func TestEachCallOfASessionMayFail(t *testing.T) {
	t.Parallel()
	for what, request := range sessionRequests() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			injection{errFails, true}.inTurn(t, beginSessions, request)
		})
	}
}

// TestASessionAbandonedAfterAFailureIsCleanedUp uses clients that do not retry, and calls
// whose answers are lost.
func TestASessionAbandonedAfterAFailureIsCleanedUp(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"begin", "begin with a key", "part", "complete", "end"} {
		for how, f := range map[string]injection{"no repeat": {errFails, false}, "lost answers": {apitest.ErrLost, true}} {
			t.Run(what+" and "+how, func(t *testing.T) {
				t.Parallel()
				f.inTurn(t, beginSessions, sessionRequests()[what])
			})
		}
	}
}

// sessionRequests returns the requests of upload sessions.
func sessionRequests() map[string]func(failing) *http.Response {
	return map[string]func(failing) *http.Response{
		"begin": func(s failing) *http.Response {
			return s.ask("POST", "/uploads", `{"name":"a","length":7,"m":"bob@example.com","notify":true}`, s.basic("alice"))
		},
		"begin for another": func(s failing) *http.Response {
			return s.ask("POST", "/uploads", `{"name":"a","length":7,"d":"new"}`, s.basic("alice"))
		},
		"begin with a key": func(s failing) *http.Response {
			return s.Request("POST", "/uploads", strings.NewReader(`{"name":"a","length":7}`), "Authorization", s.basic("alice"), "Idempotency-Key", "k")
		},
		"list":  func(s failing) *http.Response { return s.ask("GET", "/uploads", "", s.basic("alice")) },
		"state": func(s failing) *http.Response { return s.ask("GET", s.open, "", s.basic("alice")) },
		"part's URL": func(s failing) *http.Response {
			return s.ask("POST", s.open+"/parts", `{"numbers":[1]}`, s.basic("alice"))
		},
		"part":             func(s failing) *http.Response { return s.ask("PUT", s.part, "content", "") },
		"complete":         func(s failing) *http.Response { return s.ask("POST", s.open+"/complete", "", s.basic("alice")) },
		"another complete": func(s failing) *http.Response { return s.ask("POST", s.done+"/complete", "", s.basic("alice")) },
		"end":              func(s failing) *http.Response { return s.ask("DELETE", s.open, "", s.basic("alice")) },
	}
}

var errFails = errors.New("the text of a failure")

// injection says how calls fail, and whether the request is then repeated.
type injection struct {
	err   error
	again bool
}

// inTurn repeats a request and makes each of its calls fail in turn.
func (f injection) inTurn(t *testing.T, begin func(*testing.T) failing, request func(failing) *http.Response) {
	failed := 0
	for n := 1; ; n++ {
		s := begin(t)
		name := s.failAt(n, f.err)
		resp := request(s)
		s.failAt(0, nil)
		if *name == "" { // there are fewer than n calls
			break
		}
		failed++
		what := fmt.Sprintf("without call %d, %s", n, *name)
		if done := s.answered(what, *name, resp); !done && f.again {
			gone := f.err == apitest.ErrLost && resp.Request.Method == "DELETE" // the first try had ended the session
			if resp := request(s); resp.StatusCode >= 300 && !(gone && resp.StatusCode == 404) {
				s.Errorf("%s, and then with it, the status is %d: %s", what, resp.StatusCode, s.Text(resp))
			}
		}
		s.sweepClean(what)
	}
	if failed == 0 {
		t.Error("the request made no call")
	}
}

const tokenForm = "grant_type=password&username=alice&password=a+password+to+try"

// failing is a service with a file in each area and an open change link.
type failing struct {
	*apitest.Server
	link, change, pin string
	open, done, part  string        // paths of sessions, and of a part of the open one
	life              time.Duration // of what an interrupted upload leaves
}

func beginFailing(t *testing.T) failing {
	t.Helper()
	s := failing{Server: apitest.New(t), life: 25 * time.Hour}
	s.AddUser("alice", password, func(u *auth.User) { u.Quota = 100 })
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	bearer := s.Login("alice", password)
	s.link = strings.TrimPrefix(s.Put(bearer, "file=kept", "content").Files[0].LinkURL, s.Base)
	s.Put(bearer, "file=deleted&m=bob@example.com&notify=1", "content")
	s.Decode(s.Request("DELETE", "/files/2", nil, "Authorization", "Bearer "+bearer), 200)
	s.change = strings.TrimPrefix(s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200).LinkURL, s.Base)
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	s.pin = pin(t, messages[0].Text)
	return s
}

// beginSessions adds a session that needs only to be completed, and one that is already
// a file.
func beginSessions(t *testing.T) failing {
	t.Helper()
	s := beginFailing(t)
	s.life = blob.PartsLife + 25*time.Hour
	bearer := s.Login("alice", password)
	plan := fmt.Sprintf(`{"name":"a","length":7,"m":"bob@example.com","notify":true,"sha256":"%x"}`, sha256.Sum256([]byte("content")))
	for _, path := range []*string{&s.done, &s.open} {
		*path = begun(s.Server, bearer, plan)
		s.part = partOf(s.Server, bearer, *path)
		if resp := s.ask("PUT", s.part, "content", ""); resp.StatusCode != 200 {
			t.Fatalf("sending a part: status %d", resp.StatusCode)
		}
	}
	s.Decode(s.ask("POST", s.done+"/complete", "", s.basic("alice")), 200)
	return s
}

func (s failing) basic(name string) string { return apitest.Basic(name, password) }

// ask sends a request; credential is an Authorization, or a Content-Type.
func (s failing) ask(method, path, body, credential string) *http.Response {
	header := "Authorization"
	if strings.HasPrefix(credential, "application/") {
		header = "Content-Type"
	}
	return s.Request(method, path, strings.NewReader(body), header, credential)
}

// failAt makes the n-th call to the stores from now on fail, and stores its name when it
// happens. 0 ends that.
func (s failing) failAt(n int, err error) (name *string) {
	name = new(string)
	var left atomic.Int64 // a check makes several calls at once
	left.Store(int64(n))
	for _, call := range []string{
		"table.Get", "table.GetMany", "table.Query", "table.Write", "table.Update",
		"blob.Create", "blob.Open", "blob.Copy", "blob.Delete",
		"parts.Begin", "parts.Sign", "parts.Write", "parts.List", "parts.Complete", "parts.Abort",
	} {
		s.Calls.Before(call, func() error {
			if left.Add(-1) != 0 {
				return nil
			}
			*name = call
			return err
		})
	}
	return name
}

// answered checks the answer to a request with a failed call, and reports whether that
// call only cleaned up.
func (s failing) answered(what, call string, resp *http.Response) (done bool) {
	s.Helper()
	clearing := call == "blob.Delete" || call == "parts.Abort" || call == "table.Write" && strings.HasPrefix(resp.Request.URL.Path, "/v1/download/")
	if strings.HasPrefix(resp.Request.URL.Path, "/v1/files/") && (call == "blob.Copy" || call == "table.Write" && resp.StatusCode == 200) {
		clearing = true // the bytes follow the record of a moved file
	}
	if body := s.Text(resp); strings.Contains(body+fmt.Sprint(resp.Header), "failure") {
		s.Errorf("%s the answer is %v %s", what, resp.Header, body)
	}
	if clearing && resp.StatusCode >= 300 || !clearing && resp.StatusCode != 500 {
		s.Errorf("%s the status is %d", what, resp.StatusCode)
	}
	return clearing
}

// sweepClean sweeps after everything left over has expired, and checks the result.
func (s failing) sweepClean(what string) {
	s.Helper()
	s.Clock.Advance(s.life)
	if r, err := s.Service.Sweep(s.Context()); err != nil || r.Failed != 0 {
		s.Errorf("%s the sweep did %+v, %v", what, r, err)
	}
	none := func(int64) {} // a sweep would leave what is left over until its day
	repair := files.Check{
		Service: file.Service(s.Data.Ports), Repair: true,
		Found: func(files.Finding) {}, Expect: none, Done: none,
	}
	if _, err := repair.Run(s.Context()); err != nil {
		s.Errorf("%s the repair gave %v", what, err)
	}
	if _, err := s.Data.Table.DeleteExpired(s.Context(), s.Clock.Now()); err != nil {
		s.Error(err)
	}
	s.wantClean(what)
}

// wantClean checks that each record has its object, links and request for a receipt, that
// nothing else is left, not even of sessions, and that alice's usage is the sum of her
// files.
func (s failing) wantClean(what string) {
	s.Helper()
	sum := int64(0)
	records, linked, awaited := 0, 0, 0
	for _, list := range []struct {
		owner string
		area  blob.Area
	}{{"alice", blob.Files}, {"alice", blob.Backup}, {"new", blob.Files}} {
		page, err := file.Service(s.Data.Ports).List(s.Context(), auth.User{Name: list.owner}, list.area, 0, 100)
		if err != nil {
			s.Fatalf("listing: %v", err)
		}
		for _, f := range page.Files {
			if list.owner == "alice" {
				sum += f.Length
			}
			records++
			linked += 1 + len(f.Recipients)
			if f.Notify {
				awaited++
			}
		}
	}
	objects, links := len(s.Objects(blob.Files))+len(s.Objects(blob.Backup)), len(s.Partitions("link#"))
	if objects != records || links != linked || len(s.Partitions("reserved#")) != 0 {
		s.Errorf("%s there are %d records, %d objects, %d links for %d", what, records, objects, links, linked)
	}
	if receipts := len(s.Partitions("receipt#")); receipts != awaited {
		s.Errorf("%s there are %d receipts, want %d", what, receipts, awaited)
	}
	if items, kept := s.Partitions("upload"), s.Sessions(); len(items) != 0 || len(kept) != 0 {
		s.Errorf("%s these sessions are left: %v and, in the store, %v", what, items, kept)
	}
	if u, err := s.Users.Get(s.Context(), "alice"); err != nil || u.Used != sum {
		s.Errorf("%s the usage is %d bytes, %v, want %d", what, u.Used, err, sum)
	}
}

// pin returns the eight digits in a mail.
func pin(t *testing.T, text string) string {
	t.Helper()
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(word) == 8 {
			return word
		}
	}
	t.Fatal("the mail has no PIN")
	return ""
}

func TestNoFileIsWrittenAfterTheTableFailedToSync(t *testing.T) {
	t.Parallel()
	d, err := local.Open(t.TempDir(), api.Settings{}, local.Options{})
	check(t, err)
	defer d.Close()
	failed := errors.New("the disk failed")
	d.Table.Failed().Store(&failed)
	_, err = d.Disk.Create(t.Context(), blob.Files, "alice/x", strings.NewReader(strings.Repeat("x", 2*disk.MaxSmall)), -1)
	if !errors.Is(err, failed) {
		t.Errorf("a large file gave %v", err)
	}
}
