package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/table"
)

// TestDataOfAnotherFormatAreRefusedUnchanged runs what touches data.
func TestDataOfAnotherFormatAreRefusedUnchanged(t *testing.T) {
	t.Parallel()
	format := table.Key{PK: "format", SK: "format"}
	type item struct {
		V       int64  `json:"v"`
		Version string `json:"version"`
	}
	for name, other := range map[string]struct {
		op  table.Op
		err string
	}{
		"before the first release": {table.Delete(format), "it knows format 1, and a version from before the first release wrote them"},
		"a later version": {table.Put(
			format,
			item{2, "v9.8.7"},
		), "it knows format 1, and version v9.8.7 wrote them in format 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, good, empty := t.TempDir(), filepath.Join(t.TempDir(), "good"), filepath.Join(t.TempDir(), "empty")
			s := apitest.Open(t, dir)
			s.AddUser("anna", "a long password")
			apitest.Caller{
				Server: s,
				Bearer: s.Login("anna", "a long password"),
			}.Upload("file=x", strings.Repeat("large", 10_000))
			s.Close()
			runFerry(t, dir, "", "backup", good).want(t, exitOK)
			d, err := local.Open(dir, local.Options{Existing: true})
			must(t, err)
			must(t, d.Table.Write(t.Context(), other.op))
			must(t, d.Close())
			before := contents(t, dir)
			refused := func(data, args string) {
				t.Helper()
				wantSentence(t, runFerry(t, data, "", strings.Fields(args)...), exitDamaged,
					filepath.Join(dir, "table.sqlite")+": this version of Ferry cannot use these data: "+other.err)
			}
			for _, args := range []string{
				"serve --addr 127.0.0.1:0", "user add bob", "user list", "check --repair", "sweep", "key rotate",
				"outbox list", "inbox", "backup " + empty, "restore-data --file anna/1 " + good,
			} {
				refused(dir, args)
			}
			refused(empty, "restore-data "+dir)
			refused(good, "restore-data --file anna/1 "+dir)
			refused(good, "backup "+dir)
			if now := contents(t, dir); !maps.Equal(now, before) {
				t.Errorf("the data were changed: there are %d files, and were %d", len(now), len(before))
			}
			if _, err := os.Stat(empty); err == nil {
				t.Error("something was copied")
			}
		})
	}
}

// contents returns the contents of all files in a folder by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var text []byte
			text, err = os.ReadFile(path)
			all[path] = string(text)
		}
		return err
	}))
	return all
}
