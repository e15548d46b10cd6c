package files_test

import (
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
)

// TestFileIsNeverTakenForOneThatItsOwnerStored looks at all that is read of a file, on its way
// to the backup area and back.
func TestFileIsNeverTakenForOneThatItsOwnerStored(t *testing.T) {
	t.Parallel()
	alice := files.By{User: "alice"}
	for what, by := range map[string]files.By{
		"the owner stored it":                  alice,
		"another user stored it":               {User: "bob"},
		"a later user of another name did":     {User: "bob", UserIncarnation: 2},
		"a later user of the owner's name did": {User: "alice", UserIncarnation: 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			s, owner := file.Service(c.Data.Ports), c.user()
			up, err := s.Begin(t.Context(), "alice", by, 4, files.Sending{})
			c.must(err)
			c.must(up.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("four"), Size: 4}))
			stored, err := up.Commit(t.Context(), 0)
			c.must(err)
			id := stored.Files[0].ID
			look := func(area blob.Area) {
				t.Helper()
				f, err := s.Get(t.Context(), owner, area, id)
				c.must(err)
				page, err := s.List(t.Context(), owner, area, 0, 1)
				c.must(err)
				links := file.Links(c.Data.Ports)
				link, err := links.Find(t.Context(), area, links.Token(f))
				c.must(err)
				for at, f := range map[string]files.File{"record": f, "list": page.Files[0].File, "link": link.File} {
					if f.By != by || (f.Uploader() == "") != (by.User == "alice") || (f.By == files.ByOf(auth.Identity{User: owner})) != (by == alice) {
						t.Errorf("in the %s area, the %s says that %+v stored it, want %+v", area, at, f.By, by)
					}
				}
				if _, err := s.Sent(t.Context(), alice, "alice", id); area == blob.Files && (err == nil) != (by == alice) {
					t.Errorf("looked for as sent by the owner: %v", err)
				}
			}
			look(blob.Files)
			c.must(failure(s.Delete(t.Context(), owner, id)))
			look(blob.Backup)
			c.must(failure(s.Restore(t.Context(), owner, id)))
			look(blob.Files)
		})
	}
}
