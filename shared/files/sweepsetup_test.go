package files_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
	"ferry/shared/table"
)

// server is a service with the user alice, and with gone, who was removed. Tests set its clock.
type server struct {
	*apitest.Server
	start time.Time
}

func newSweepServer(t *testing.T) server {
	t.Helper()
	s := server{apitest.New(t), time.Now()}
	s.AddUser("alice", "a password of alice")
	s.AddUser("gone", "a password of gone")
	s.removeUser("gone")
	return s
}

// sweeper returns a Sweeper for one run, with a grace of one hour.
func (s server) sweeper() *files.Sweeper {
	return &files.Sweeper{Service: file.Service(s.Data.Ports), Grace: time.Hour}
}

// sweep runs a whole sweep and returns its report.
func (s server) sweep() files.SweepReport {
	s.Helper()
	r, err := s.sweeper().Run(s.Context())
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
	u, err := file.Service(s.Data.Ports).Begin(s.Context(), owner, files.By{User: owner}, int64(len(content)), files.Sending{})
	if err == nil {
		err = u.Add(s.Context(), files.Part{Name: "a file", Body: strings.NewReader(content), Size: int64(len(content))})
	}
	if err != nil {
		s.Fatalf("storing a file: %v", err)
	}
	stored, err := u.Commit(s.Context(), 0)
	if err != nil {
		s.Fatalf("storing a file: %v", err)
	}
	return stored.Files[0].File
}

// by returns what a user stores files by.
func (s server) by(name string) files.By {
	s.Helper()
	return files.ByOf(auth.Identity{User: s.user(name)})
}

// user returns a user's record.
func (s server) user(name string) auth.User {
	s.Helper()
	u, err := s.Users.Get(s.Context(), name)
	if err != nil {
		s.Fatalf("reading %s: %v", name, err)
	}
	return u
}

// orphan puts an object without a record into an area, and marks its id as given
// out.
func (s server) orphan(area blob.Area, key string) {
	s.Helper()
	if name, id, ok := files.ParseBlobKey(key); ok {
		u, err := s.Users.Get(s.Context(), name)
		if err == nil && u.LastFile < id {
			err = s.Data.Table.Write(s.Context(), table.Update(auth.UserKey(name)).Set("lastFile", id))
		}
		if err != nil && !errors.Is(err, auth.ErrUnknownUser) {
			s.Fatalf("giving out an id: %v", err)
		}
	}
	s.object(area, key)
}

// object puts an object into an area.
func (s server) object(area blob.Area, key string) {
	s.Helper()
	if _, err := s.Data.Disk.Create(s.Context(), area, key, strings.NewReader("left over"), -1); err != nil {
		s.Fatalf("putting an object: %v", err)
	}
}

// wantObjects checks the keys of all objects in an area.
func (s server) wantObjects(area blob.Area, want ...string) {
	s.Helper()
	if got := s.Objects(area); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("the %s area holds %v, want %v", area, got, want)
	}
}
