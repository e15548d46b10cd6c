package local_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/local"
)

func TestNoFileIsWrittenAfterTheTableFailedToSync(t *testing.T) {
	t.Parallel()
	d, err := local.Open(t.TempDir(), api.Settings{}, local.Options{})
	check(t, err)
	defer d.Close()
	failed := errors.New("the disk failed")
	d.Table.Failed().Store(&failed)
	_, err = d.Disk.Create(t.Context(), blob.Files, "alice/x", strings.NewReader(strings.Repeat("x", 2*disk.MaxSmall)), -1)
	if !errors.Is(err, failed) {
		t.Errorf("a large file gave %v", err)
	}
}
