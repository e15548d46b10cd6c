package auth_test

import (
	"sync"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// TestAddDetectsAUserRemovedMeanwhile lets an earlier user of the name get files and be
// removed between Add's read and its write.
func TestAddDetectsAUserRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for what, rounds := range map[string][]string{
		"an existing user": {"add"},
		"a removed user":   {"add", "remove"},
		"a new user":       {},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			exists := false
			addOrRemove := func(step string) {
				if exists == (step == "add") {
					return
				}
				exists = !exists
				if step == "add" {
					s.AddUser("alice", "an earlier password")
					return
				}
				must(t, s.Data.Table.Write(t.Context(), table.Update(auth.UserKey("alice")).Add("lastFile", 3)))
				must(t, s.Users.Disable(t.Context(), "alice"))
				must(t, s.Users.Remove(t.Context(), "alice"))
			}
			for _, step := range rounds {
				addOrRemove(step)
			}
			s.Calls.Before("table.Write", func() error {
				s.Calls.Before("table.Write", nil)
				addOrRemove("add")
				addOrRemove("remove")
				return nil
			})
			store := auth.NewUsers(s.Data.Ports.Table, s.Clock.Now)
			late := auth.User{Name: "alice", State: auth.Active, Password: "hash"}
			if err := store.Add(t.Context(), late); !fault.Is(err, fault.Conflict) {
				t.Errorf("Add gives %v", err)
			}
			s.Calls.Before("table.Write", nil)
			addOrRemove("remove")
			must(t, store.Add(t.Context(), late))
			before, err := s.Users.Get(t.Context(), "alice")
			if err != nil || before.LastFile < 3 || before.Generation < 1 {
				t.Errorf("the new user has the last file %d and the generation %d, %v", before.LastFile, before.Generation, err)
			}
		})
	}
}

// TestConcurrentUsersOfANameShareNoFileID adds, uses and removes users of one name
// concurrently. No file id may be given out twice.
func TestConcurrentUsersOfANameShareNoFileID(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	var mu sync.Mutex
	given := map[int64]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				// An operation that comes too late is refused; other tests check that.
				_ = s.Users.Add(t.Context(), auth.User{Name: "alice", State: auth.Active, Password: "hash"})
				var u auth.User
				if s.Data.Table.Update(t.Context(), table.Update(auth.UserKey("alice")).Add("lastFile", 1).If(table.Exists()), &u) == nil {
					mu.Lock()
					if given[u.LastFile] {
						t.Errorf("the id %d was given out twice", u.LastFile)
					}
					given[u.LastFile] = true
					mu.Unlock()
				}
				_ = s.Users.Disable(t.Context(), "alice")
				_ = s.Users.Remove(t.Context(), "alice")
			}
		})
	}
	wg.Wait()
	if len(given) < 4 {
		t.Errorf("only %d ids were given out", len(given))
	}
}
