package files_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
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
func newCaller(t *testing.T, change ...func(*auth.User)) caller {
	t.Helper()
	return callerOf(apitest.New(t), change...)
}

func callerOf(s *apitest.Server, change ...func(*auth.User)) caller {
	s.Helper()
	s.AddUser("alice", password, change...)
	return caller{server{Server: s}, "alice", s.Login("alice", password)}
}

func (c caller) caller() apitest.Caller {
	return apitest.Caller{Server: c.Server, Name: c.name, Bearer: c.bearer}
}

func (c caller) put(query, content string) apitest.File { return c.caller().Upload(query, content) }

// call sends a request with the caller's bearer.
func (c caller) call(method, path string) (int, apitest.Envelope) {
	a := c.caller().Ask(method+" "+path, "")
	return a.Code, a.Envelope
}

// get fetches a link without logging in.
func (c caller) get(link string) (int, string) {
	a := c.Send("GET "+link, "")
	return a.Code, a.Text
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
	return files.ByOf(auth.Identity{User: c.user()})
}

// user returns the caller as stored.
func (c caller) user() auth.User {
	c.Helper()
	u, err := c.Users.Get(c.Context(), c.name)
	if err != nil {
		c.Fatalf("reading the user: %v", err)
	}
	return u
}

// stored returns the files of both areas, from their records.
func (c caller) stored() []*files.Listed {
	c.Helper()
	var all []*files.Listed
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		page, err := file.Service(c.Data.Ports).List(c.Context(), c.user(), area, 0, 1000)
		if err != nil {
			c.Fatalf("listing: %v", err)
		}
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
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		for _, key := range c.Objects(area) {
			objects[fmt.Sprint(area, " ", key)] = true
		}
	}
	if len(all) != want || len(objects) != want || len(c.Partitions("link#")) != want {
		c.Fatalf("there are %d records, %d objects and %d links, want %d of each", len(all), len(objects), len(c.Partitions("link#")), want)
	}
	for _, f := range all {
		if !objects[fmt.Sprint(f.Area, " ", f.Blob)] {
			c.Errorf("the bytes of %+v are missing from %v", f.File, objects)
		}
	}
}

// fixedURL makes links independent of the port of a test's server.
func fixedURL(s *api.Settings, _ *local.ServiceOptions) { s.PublicURL = "https://ferry.example/v1" }
