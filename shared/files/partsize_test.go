package files_test

import (
	"testing"

	"ferry/shared/blob"
	"ferry/shared/files"
)

func TestLargeFileHasLargeParts(t *testing.T) {
	t.Parallel()
	most := blob.S3Limits()
	l := blob.Layout{Length: most.MaxLength(), PartSize: files.PartSize(most, most.MaxLength(), 0)}
	if l.Check(most) != nil || l.Count() != most.MaxParts {
		t.Errorf("the largest file has %d parts of %d bytes", l.Count(), l.PartSize)
	}
}
