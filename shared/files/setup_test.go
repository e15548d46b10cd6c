package files_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/table"
	"ferry/shared/users"
)

const (
	password = apitest.Password
	day      = 24 * time.Hour
)

// caller is a user of a service that belongs to one test.
type caller struct {
	server
	name, bearer string
}

// newCaller starts a service and logs in its one user, alice.
func newCaller(t *testing.T, change ...func(*users.User)) caller {
	t.Helper()
	a := apitest.New(t).Add("alice", change...)
	return caller{server{a.Server}, a.Name, a.Bearer}
}

func (c caller) caller() apitest.Caller {
	return apitest.Caller{Server: c.Server, Name: c.name, Bearer: c.bearer}
}

func (c caller) put(query, content string) apitest.File { return c.caller().Upload(query, content) }

// ask sends a request with the caller's bearer.
func (c caller) ask(request string) apitest.Answer {
	c.Helper()
	return c.caller().Ask(request, "")
}

// upload sends a body straight to the handler, so that the request has ended when
// upload returns, even after an error. A length of -1 is unknown.
func (c caller) upload(query string, body io.Reader, length int64) *httptest.ResponseRecorder {
	c.Helper()
	r := httptest.NewRequestWithContext(c.Context(), "POST", "/v1/upload?"+query, body)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	w := httptest.NewRecorder()
	c.HTTP.Config.Handler.ServeHTTP(w, r)
	return w
}

// by returns what the caller stores files by.
func (c caller) by() files.By {
	c.Helper()
	return files.ByOf(identity.Identity{User: c.user()})
}

// user returns the caller as stored.
func (c caller) user() users.User {
	c.Helper()
	return c.server.user(c.name)
}

// stored returns the files of both areas, from their records.
func (c caller) stored() []*files.Listed {
	c.Helper()
	var all []*files.Listed
	for _, area := range blob.Areas() {
		page, err := c.Service.Files().List(c.Context(), c.user(), area, 0, 1000)
		c.must(err)
		all = append(all, page.Files...)
	}
	return all
}

// sum returns the size of all the caller's files.
func (c caller) sum() (bytes int64) {
	c.Helper()
	for _, f := range c.stored() {
		bytes += f.Length
	}
	return bytes
}

// wantConsistent checks that there are this many records, each with its link and its
// object, and nothing else.
func (c caller) wantConsistent(want int) {
	c.Helper()
	all, objects := c.stored(), map[string]bool{}
	for _, area := range blob.Areas() {
		for _, key := range c.Objects(area) {
			objects[fmt.Sprint(area, " ", key)] = true
		}
	}
	if len(all) != want || len(objects) != want || len(c.Partitions("link#")) != want {
		c.Fatalf("there are %d records, %d objects and %d links, want %d of each",
			len(all), len(objects), len(c.Partitions("link#")), want)
	}
	for _, f := range all {
		if !objects[fmt.Sprint(f.Area, " ", f.Blob)] {
			c.Errorf("the bytes of %+v are missing from %v", f.File, objects)
		}
	}
}

// server is a service with the user alice, and with gone, who was removed. Tests set its clock.
type server struct{ *apitest.Server }

func newSweepServer(t *testing.T) server {
	t.Helper()
	s := server{apitest.New(t)}
	s.AddUser("alice", "a password of alice")
	s.AddUser("gone", "a password of gone")
	s.removeUser("gone")
	return s
}

// sweeper returns a Sweeper for one run, with a grace of one hour.
func (s server) sweeper() *files.Sweeper {
	return &files.Sweeper{Service: s.Service.Files(), Grace: time.Hour}
}

// sweep runs a whole sweep and returns its report.
func (s server) sweep() files.SweepReport {
	s.Helper()
	return s.complete(s.sweeper())
}

func (s server) complete(w *files.Sweeper) files.SweepReport {
	s.Helper()
	r, err := w.Run(s.Context())
	if err != nil || !r.Complete {
		s.Fatalf("the sweep reported %+v, %v", r, err)
	}
	return r
}

// removeUser removes a user, whose files may stay.
func (s server) removeUser(name string) {
	s.Helper()
	s.must(s.Users.Disable(s.Context(), name))
	s.must(s.Users.Remove(s.Context(), name))
}

// put stores a file in the user area and returns it.
func (s server) put(owner, content string) files.File {
	s.Helper()
	u, err := s.Service.Files().Begin(s.Context(), owner, files.By{User: owner}, int64(len(content)), files.Sending{})
	if err == nil {
		err = u.Add(s.Context(), files.Part{
			Name: "a file",
			Body: strings.NewReader(content),
			Size: int64(len(content)),
		})
	}
	s.must(err)
	stored, err := u.Commit(s.Context(), 0)
	s.must(err)
	return stored.Files[0].File
}

// by returns what a user stores files by.
func (s server) by(name string) files.By {
	s.Helper()
	return files.ByOf(identity.Identity{User: s.user(name)})
}

// user returns a user's record.
func (s server) user(name string) users.User {
	s.Helper()
	u, err := s.Users.Get(s.Context(), name)
	s.must(err)
	return u
}

// orphan puts an object without a record into an area, and marks its id as given
// out.
func (s server) orphan(area blob.Area, key string) {
	s.Helper()
	if name, id, ok := files.ParseBlobKey(key); ok {
		u, err := s.Users.Get(s.Context(), name)
		if err == nil && u.LastFile < id {
			err = s.Data.Table.Write(s.Context(), table.Update(users.Key(name)).Set("lastFile", id))
		}
		if err != nil && !errors.Is(err, users.ErrUnknown) {
			s.Fatalf("giving out an id: %v", err)
		}
	}
	s.object(area, key)
}

// object puts an object into an area.
func (s server) object(area blob.Area, key string) {
	s.Helper()
	s.must(failure(s.Data.Disk.Create(s.Context(), area, key, strings.NewReader("left over"), -1)))
}

// wantObjects checks the keys of all objects in an area.
func (s server) wantObjects(area blob.Area, want ...string) {
	s.Helper()
	expect.Equal(s.TB, "objects in the "+string(area)+" area", fmt.Sprint(s.Objects(area)), fmt.Sprint(want))
}
