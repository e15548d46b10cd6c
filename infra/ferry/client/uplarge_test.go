package client

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
)

func TestWhatChangedInABundleIsNamed(t *testing.T) {
	t.Parallel()
	before := map[string]string{"a": "1", "b": "2", "c/": "folder"}
	for want, change := range map[string][2]string{
		"": {"a", "1"}, "a has changed": {"a", "2"}, "c/ is gone": {"c/", ""}, "d is new": {"d", "1"},
	} {
		now := maps.Clone(before)
		if now[change[0]] = change[1]; change[1] == "" {
			delete(now, change[0])
		}
		if got := difference(before, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPatternsMeanEntriesOfABundle(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		pattern, yes, no string
	}{
		{pattern: "photos/*", yes: "photos/a photos/b/c photos/b/", no: "photos/ a/photos/b photo"},
		{pattern: "photos", yes: "photos/ photos/a x/photos/a photos", no: "photo/a photoss"},
		{pattern: "photos/", yes: "photos/a", no: "photo/a"},
		{pattern: "*.jpg", yes: "a.jpg b/c/d.jpg x.jpg/a", no: "a.jpeg"},
		{pattern: "a/*/c", yes: "a/b/c a/b/c/d", no: "a/c a/b/d"},
	} {
		for paths, want := range map[string]bool{k.yes: true, k.no: false} {
			for path := range strings.FieldsSeq(paths) {
				expect.Equal(t, k.pattern+" means "+path, matches(k.pattern, path), want)
			}
		}
	}
}

// TestChangedFileLeavesNoSession: nobody could resume the upload of the old content.
func TestChangedFileLeavesNoSession(t *testing.T) {
	s := apitest.New(t)
	s.AddUser("ann", "correct horse battery")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "large")
	expect.NoErr(t, os.WriteFile(path, make([]byte, client.SmallFile+1), 0o600))
	file, err := os.Open(path)
	expect.NoErr(t, err)
	defer file.Close()
	info, err := file.Stat()
	expect.NoErr(t, err)
	expect.NoErr(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)))
	cl, err := client.New(client.Options{URL: s.Base, User: "ann", Password: "correct horse battery"})
	expect.NoErr(t, err)
	u := &uploader{
		client: &identity{Client: cl, user: "ann"},
		meter:  cli.NewMeter(cli.Console{Err: cli.Screen{Raw: io.Discard}}, true),
	}
	if _, err := u.large(t.Context(), "large", file, info); !errors.Is(err, client.ErrChanged) {
		t.Errorf("uploading it ended with %v, want ErrChanged", err)
	}
	for session, err := range cl.Sessions(t.Context()) {
		t.Errorf("a session is left: %v, %v", session, err)
	}
	folder, err := stateFolder()
	expect.NoErr(t, err)
	states, err := os.ReadDir(folder)
	expect.NoErr(t, err)
	expect.Equal(t, "states left in the cache", len(states), 0)
}
