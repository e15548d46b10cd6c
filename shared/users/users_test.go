package users_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// store returns accounts on a table of their own.
func store(t *testing.T) *users.Service {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return &users.Service{Table: db, Now: time.Now}
}

func add(t *testing.T, s *users.Service, name string, state users.State) {
	t.Helper()
	must(t, s.Add(t.Context(), users.User{Name: name, State: state, Password: "hash"}))
}

func get(t *testing.T, s *users.Service, name string) users.User {
	t.Helper()
	u, err := s.Get(t.Context(), name)
	must(t, err)
	return u
}

func TestNamesIgnoreCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"alice": "alice", "Alice": "alice", "a.b-c_d@example.com+x": "a.b-c_d@example.com+x", "7": "7", strings.Repeat(
			"a",
			64,
		): strings.Repeat("a", 64),
		"": "", ".hidden": "", "a b": "", "a/b": "", "é": "", "a\n": "", "a#b": "", strings.Repeat(
			"a",
			65,
		): "", "\u212a": "k",
	} {
		got, ok := users.CanonicalName(name)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q gives %q, %v", name, got, ok)
		}
	}
}

func TestUserIsAddedOnce(t *testing.T) {
	t.Parallel()
	s := store(t)
	var added atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			err := s.Add(t.Context(), users.User{Name: "alice", State: users.Active})
			if err == nil {
				added.Add(1)
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("adding: %v", err)
			}
		})
	}
	wg.Wait()
	expect.Equal(t, "times that the user was added", added.Load(), 1)
}

func TestUsersAreListedInOrderWithoutRemovedOnes(t *testing.T) {
	t.Parallel()
	s := store(t)
	var want []string
	for i := range 230 { // more than two pages
		name := fmt.Sprintf("user%03d", i)
		add(t, s, name, users.Disabled)
		if i%50 == 0 {
			must(t, s.Remove(t.Context(), name))
			continue
		}
		want = append(want, name)
	}
	var got []string
	must(t, s.Names(t.Context(), "", func(u users.User, _ error) error { got = append(got, u.Name); return nil }))
	expect.Equal(t, "the list", got, want)
	stop := errors.New("stop")
	expect.Err(t, "an error of yield", s.Names(t.Context(), "", func(users.User, error) error { return stop }), stop)
}

func TestEnableRestoresTheState(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "alice", users.FirstAccess)
	for range 2 { // the second time changes nothing
		must(t, s.Disable(t.Context(), "alice"))
	}
	if u := get(t, s, "alice"); u.State != users.Disabled || u.Generation != 1 || u.Password != "hash" {
		t.Errorf("the disabled user is %+v", u)
	}
	for range 2 {
		state, err := s.Enable(t.Context(), "alice")
		must(t, err)
		expect.Equal(t, "the state", state, users.FirstAccess)
	}
	if u := get(t, s, "alice"); u.State != users.FirstAccess || u.Generation != 1 {
		t.Errorf("the enabled user is %+v", u)
	}
}

func TestSettingAPasswordSetsStateAndGeneration(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "alice", users.FirstAccess)
	must(t, s.SetPassword(t.Context(), "alice", "new", users.Active))
	if u := get(t, s, "alice"); u.Password != "new" || u.State != users.Active || u.Generation != 1 {
		t.Errorf("the user is %+v", u)
	}
	for _, old := range []string{"another", "new"} {
		must(t, s.Rehash(t.Context(), "alice", old, "stronger"))
		want := map[string]string{"another": "new", "new": "stronger"}[old]
		if u := get(t, s, "alice"); u.Password != want || u.Generation != 1 {
			t.Errorf("after a rehash of %q the user is %+v", old, u)
		}
	}
}

func TestUnknownUsersAreRefused(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "active", users.Active)
	expect.Err(t, "getting", failure(s.Get(t.Context(), "nobody")), users.ErrUnknown)
	expect.Err(t, "disabling", s.Disable(t.Context(), "nobody"), users.ErrUnknown)
	expect.Err(t, "enabling", failure(s.Enable(t.Context(), "nobody")), users.ErrUnknown)
	expect.Err(t, "removing", s.Remove(t.Context(), "nobody"), users.ErrUnknown)
	expect.Fault(t, "setting a password", s.SetPassword(t.Context(), "nobody", "x", users.Active), fault.Conflict)
	expect.Fault(t, "removing a user who is not disabled", s.Remove(t.Context(), "active"), fault.Conflict)
}

func TestEditChangesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "alice", users.Active)
	before := get(t, s, "alice")
	first, second := before, before
	first.Email, first.KeepDays = "alice@example.com", 7
	second.Phone, second.Lang = "+393471234567", "it"
	for _, after := range []users.User{first, second} { // both were read before either was written
		must(t, s.Edit(t.Context(), before, after))
	}
	must(t, s.Disable(t.Context(), "alice"))
	cleared := first
	cleared.Email = ""
	must(t, s.Edit(t.Context(), first, cleared))
	want := before
	want.Phone, want.Lang, want.KeepDays, want.State, want.Before, want.Generation = "+393471234567", "it", 7, users.Disabled, users.Active, before.Generation+1
	expect.Equal(t, "the user", get(t, s, "alice"), want)
	for name, err := range s.QuotaList(t.Context(), "") {
		t.Errorf("%q is listed with a quota, %v", name, err)
	}
}

func TestAnotherAddressEndsWhatWasSentToTheFirst(t *testing.T) {
	t.Parallel()
	s := store(t)
	for state, ends := range map[users.State]int64{users.FirstAccess: 1, users.Active: 0} {
		add(t, s, string(state), state)
		before := get(t, s, string(state))
		after := before
		after.Email = "right@example.com"
		must(t, s.Edit(t.Context(), before, after))
		expect.Equal(t, "the generation of "+string(state), get(t, s, string(state)).Generation, before.Generation+ends)
	}
}

// unread is a table that cannot be read.
type unread struct{ table.Table }

func (unread) GetMany(context.Context, ...table.Key) ([]table.Item, error) { return nil, table.ErrBusy }

func TestUsersAreNotMissingFromATableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "alice", users.Active)
	err := users.KnowsLess(t.Context(), s.Table, unread{s.Table}, func(what string) { t.Errorf("%s", what) })
	expect.Err(t, "reading", err, table.ErrBusy)
}

func TestEditIsRefusedForAnotherUserOfTheName(t *testing.T) {
	t.Parallel()
	s := store(t)
	add(t, s, "alice", users.Active)
	before := get(t, s, "alice")
	after := before
	after.Lang = "it"
	must(t, s.Disable(t.Context(), "alice"))
	must(t, s.Remove(t.Context(), "alice"))
	add(t, s, "alice", users.Active)
	if err := s.Edit(t.Context(), before, after); !fault.Is(err, fault.Conflict) || get(t, s, "alice").Lang != "" {
		t.Errorf("%v, %+v", err, get(t, s, "alice"))
	}
}

// TestAddDetectsAUserRemovedMeanwhile lets an earlier user of the name get files and be
// removed between Add's read and its write.
func TestAddDetectsAUserRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for what, earlier := range map[string]bool{"a removed user": true, "a new user": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			comesAndGoes := func() {
				s.AddUser("alice", "an earlier password")
				must(t, s.Data.Table.Write(t.Context(), table.Update(users.Key("alice")).Add("lastFile", 3)))
				must(t, s.Users.Disable(t.Context(), "alice"))
				must(t, s.Users.Remove(t.Context(), "alice"))
			}
			if earlier {
				comesAndGoes()
			}
			s.Calls.Before("table.Write", func() error {
				s.Calls.Before("table.Write", nil)
				comesAndGoes()
				return nil
			})
			store := &users.Service{Table: s.Data.Ports.Table, Now: s.Clock.Now}
			late := users.User{Name: "alice", State: users.Active, Password: "hash"}
			expect.Fault(t, "Add", store.Add(t.Context(), late), fault.Conflict)
			must(t, store.Add(t.Context(), late))
			if u := get(t, s.Users, "alice"); u.LastFile < 3 || u.Generation < 1 {
				t.Errorf("the new user has the last file %d and the generation %d", u.LastFile, u.Generation)
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
				_ = s.Users.Add(t.Context(), users.User{Name: "alice", State: users.Active, Password: "hash"})
				var u users.User
				if s.Data.Table.Update(t.Context(), table.Update(users.Key("alice")).
					Add("lastFile", 1).
					If(table.Exists()), &u) == nil {
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func failure[T any](_ T, err error) error { return err }
