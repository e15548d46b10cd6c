package disk_test

import (
	"errors"
	"os"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
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
	if err := s.Copy(t.Context(), blob.Files, "demo/1-a", blob.Backup, "demo/1-b"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
}
