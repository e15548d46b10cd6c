package disk_test

import (
	"os"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/expect"
)

func TestCopyOfAnObjectDeletedMeanwhileIsErrNotFound(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	create(t, s, "demo/1-a", "x")
	s.SetLink(func(from, to string) error {
		if err := os.Remove(from); err != nil {
			t.Error(err)
		}
		return os.Link(from, to)
	})
	expect.Err(t, "the copy", s.Copy(t.Context(), blob.Files, "demo/1-a", blob.Backup, "demo/1-b"), blob.ErrNotFound)
}
