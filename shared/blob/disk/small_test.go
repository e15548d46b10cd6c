package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

func TestOnlyLargeObjectsAreFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, small := withTable(t, dir, true)
	for size, isFile := range map[int]bool{0: false, disk.MaxSmall: false, disk.MaxSmall + 1: true} {
		for _, announced := range []int64{int64(size), -1} {
			key := "owner/" + strings.Repeat("x", 1+size%5) + map[bool]string{true: "-unknown", false: "-known"}[announced < 0]
			must(t, second(s.Create(t.Context(), blob.Files, key, strings.NewReader(strings.Repeat("y", size)), announced)))
			_, stat := os.Stat(filepath.Join(dir, "files", key))
			_, read := small.Read(t.Context(), blob.Files, key)
			if (stat == nil) != isFile || (read == nil) == isFile {
				t.Errorf("%d bytes: looking for a file gives %v, looking for a row gives %v", size, stat, read)
			}
			if got := content(t, s, blob.Files, key); len(got) != size {
				t.Errorf("%d bytes read as %d", size, len(got))
			}
		}
	}
}

// TestSmallAndLargeObjectsShareTheirKeys also copies and lists objects of both kinds.
func TestSmallAndLargeObjectsShareTheirKeys(t *testing.T) {
	t.Parallel()
	s, _ := withTable(t, t.TempDir(), true)
	contents := map[string]string{"owner/1-small": "small", "owner/2-large": strings.Repeat("large", disk.MaxSmall)}
	for key, text := range contents {
		create(t, s, key, text)
		for _, other := range contents {
			if _, err := s.Create(t.Context(), blob.Files, key, strings.NewReader(other), -1); !errors.Is(err, blob.ErrExists) {
				t.Errorf("creating %s again with %d bytes gives %v, want ErrExists", key, len(other), err)
			}
		}
		for range 2 {
			if err := s.Copy(t.Context(), blob.Files, key, blob.Backup, key); err != nil {
				t.Error(err)
			}
		}
		if got := content(t, s, blob.Backup, key); got != text {
			t.Errorf("the copy of %s has %d bytes", key, len(got))
		}
	}
	for limit, want := range map[int]int{1: 1, 2: 2, 3: 2} {
		objects, err := s.List(t.Context(), blob.Backup, "", limit)
		if err != nil || len(objects) != want || objects[0].Key != "owner/1-small" || objects[0].Size != 5 {
			t.Errorf("with a limit of %d: got %+v, %v", limit, objects, err)
		}
	}
	if after, err := s.List(t.Context(), blob.Backup, "owner/1-small", 5); err != nil || len(after) != 1 || after[0].Key != "owner/2-large" {
		t.Errorf("after the small one: got %+v, %v", after, err)
	}
}
