package disk_test

import (
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
			key := "owner/" + strings.Repeat("x", 1+size%5) + map[bool]string{
				true:  "-unknown",
				false: "-known",
			}[announced < 0]
			must(
				t,
				second(s.Create(t.Context(), blob.Files, key, strings.NewReader(strings.Repeat("y", size)), announced)),
			)
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
