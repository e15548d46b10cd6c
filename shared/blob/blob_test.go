package blob_test

import (
	"strings"
	"testing"

	"ferry/shared/blob"
)

func TestAKeyHasTwoPlainElements(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", 128)
	for _, good := range []string{"a/b", "+user@example.org_-./+@_-.", "a/a..b", longest + "/" + longest} {
		if err := blob.CheckKey(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "/", "a", "a/", "/a", "a/b/c", "a//b", "/a/b", "a/b/", "./a", "../a", "a/.", "a/..", "a/.b", ".a/b",
		"../../etc/passwd", "a b/c", "a/b c", "a\\b/c", "a/b\\c", "a/b\x00", "a/b\n", "é/a", "a/文", "a/b*", "a/b?", "a/b%2f",
		"a/b:c", "a/b~", longest + "a/b", "a/b" + longest,
	} {
		if blob.CheckKey(bad) == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
}

func TestPagesNumbersAndLayoutsOutOfRangeAreErrors(t *testing.T) {
	t.Parallel()
	layout := blob.Layout{Length: 3, PartSize: 1}
	for what, err := range map[string]error{
		"no entries":     blob.CheckLimit(0),
		"-1 entries":     blob.CheckLimit(-1),
		"many entries":   blob.CheckLimit(blob.MaxList + 1),
		"part 0":         layout.CheckNumber(0),
		"part 4 of 3":    layout.CheckNumber(4),
		"length -2":      blob.Layout{Length: -2, PartSize: 1}.Check(blob.S3Limits()),
		"empty parts":    blob.Layout{Length: 10}.Check(blob.S3Limits()),
		"many parts":     blob.Layout{Length: blob.MaxParts + 1, PartSize: 1}.Check(blob.S3Limits()),
		"too large ones": blob.Layout{Length: 1, PartSize: blob.MaxPartSize + 1}.Check(blob.S3Limits()),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for what, err := range map[string]error{
		"one entry":      blob.CheckLimit(1),
		"a whole page":   blob.CheckLimit(blob.MaxList),
		"part 1":         layout.CheckNumber(1),
		"part 3 of 3":    layout.CheckNumber(3),
		"unknown length": blob.Layout{Length: -1, PartSize: 1}.Check(blob.S3Limits()),
		"no bytes":       blob.Layout{PartSize: 1}.Check(blob.S3Limits()),
		"the most of all": blob.Layout{
			Length:   blob.MaxParts * blob.MaxPartSize,
			PartSize: blob.MaxPartSize,
		}.Check(blob.S3Limits()),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
