package files_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/files"
)

func FuzzAKeyOfBytesStaysInItsFolder(f *testing.F) {
	for _, key := range []string{
		"D0-never/7-AAAAAAAAAAAAAAAAAAAAAA-alice", "Df-2026-12-21/07-AAAAAAAAAAAAAAAAAAAAAA-a@b+c", "a@b+c/1-x", "../x/1-y", "a/..", "a/../b", "/a/1-x", "a/1-x/", "a/+7-x", "a/07-x", "a/-7-x", "a/7-",
		"a\\b/1-x", "a/1-x\x00", ".hidden/1-x", "a/99999999999999999999-x", "é/1-x", strings.Repeat("a", 129) + "/1-x",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		owner, id, named := files.ParseBlobKey(key)
		if named && !(strings.Contains(key, "/"+strconv.FormatInt(id, 10)+"-") && strings.HasSuffix(key, "-"+owner)) {
			t.Errorf("%q is read as file %d of %q", key, id, owner)
		}
		if !named && (owner != "" || id != 0) {
			t.Errorf("%q is no key of Ferry's, but tells of file %d of %q", key, id, owner)
		}
		if blob.CheckKey(key) != nil {
			return
		}
		path := filepath.Join("/data/files", filepath.FromSlash(key))
		in, err := filepath.Rel("/data/files", path)
		if err != nil ||
			filepath.ToSlash(in) != key ||
			!filepath.IsLocal(in) ||
			strings.Count(key, "/") != 1 ||
			len(key) > 257 ||
			strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == ':' }) {
			t.Errorf("%q is %q", key, path)
		}
	})
}
