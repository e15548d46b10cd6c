package main

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/table"
	"ferry/shared/users"
)

// TestALostOrUnreadableUserIsAddedAgainWithFilesOrRemoved has the second user of a name.
func TestALostOrUnreadableUserIsAddedAgainWithFilesOrRemoved(t *testing.T) {
	t.Parallel()
	profile, entry := users.Key("bob"), table.Key{PK: "users", SK: "bob"}
	for what, damage := range map[string]func(s *apitest.Server) error{
		"a lost item": func(s *apitest.Server) error {
			return s.Data.Table.Write(t.Context(), table.Delete(profile))
		},
		"an unreadable item": func(s *apitest.Server) error { s.Spoil(profile); return nil },
		"no item at all": func(s *apitest.Server) error {
			return s.Data.Table.Write(t.Context(), table.Delete(profile), table.Delete(entry))
		},
		"all unreadable": func(s *apitest.Server) error { s.Spoil(profile); s.Spoil(entry); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			s.AddUser("bob", annsPassword)
			must(t, errors.Join(s.Users.Disable(t.Context(), "bob"), s.Users.Remove(t.Context(), "bob")))
			s.AddUser("bob", annsPassword)
			s.AddUser("eve", annsPassword)
			bearer := s.Login("bob", annsPassword)
			link := apitest.Caller{Server: s, Bearer: bearer}.Upload("file=a", "content").LinkURL
			_, err := s.Data.Disk.Create(
				t.Context(),
				blob.Backup,
				"D0-never/9-0123456789012345678901-bob",
				strings.NewReader("x"),
				1,
			)
			step := func(code int, says, stdin, args string) {
				t.Helper()
				runFerry(t, s.Dir, stdin, strings.Fields(args)...).want(t, code, says)
			}
			opens := func() bool { return s.Request("GET", strings.TrimPrefix(link, s.Base), nil).StatusCode == 200 }
			must(t, errors.Join(err, damage(s)))
			if step(exitOK, "\neve  ", "", "user list"); what != "no item at all" {
				step(exitOK, "bob   damaged", "", "user list")
				step(exitDamaged, "--with-files", "", "user show bob")
			}
			step(exitDamaged, "ferry user show bob says more", "", "user invite bob")
			step(exitDamaged, "restore the table from a backup, or use ferry user add --with-files", "", "user add bob")
			step(exitOK, "", annsPassword+"\n", "user add bob --with-files --active --password-stdin --quota 1GB")
			u, err := s.Users.Get(t.Context(), "bob")
			if err != nil || u.Incarnation != 1 || u.LastFile != 9 || u.Used != 7 || u.Generation < 2 || !opens() {
				t.Errorf("the user is %+v, %v", u, err)
			}
			s.Send("GET /download/list", "", "Authorization", "Bearer "+bearer).Want(401)
			apitest.Caller{Server: s, Bearer: s.Login("bob", annsPassword)}.Upload("file=b", "content")
			step(exitOther, "already exists", "", "user add bob --with-files")
			step(exitUnknown, "there is no user ann", "", "user add ann --with-files")

			must(t, damage(s))
			step(exitOK, "and 2 files were removed", "", "user remove bob --yes")
			if left := len(s.Partitions("link#")) + len(s.Partitions("files#")) + len(s.Partitions("user#bob")); left != 0 ||
				opens() {
				t.Errorf("%d items are left", left)
			}
			step(exitUnknown, "there is no user bob", "", "user remove bob --yes")
			s.AddUser("bob", annsPassword)
			if u, err := s.Users.Get(t.Context(), "bob"); err != nil || u.Incarnation != 2 || u.LastFile != 10 {
				t.Errorf("the next user is %+v, %v", u, err)
			}
		})
	}
}
