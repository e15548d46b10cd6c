package files

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/bundle"
	"ferry/shared/fault"
)

// BundleType is the media type of a bundle.
const BundleType = "application/zip"

// BundleFault turns a *bundle.Error, which says why some bytes are no bundle, into an Invalid
// fault.
func BundleFault(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	if bad, ok := errors.AsType[*bundle.Error](err); ok {
		return &fault.Fault{Kind: fault.Invalid, Detail: bad.Error(), Cause: err}
	}
	return fault.Wrap(err, "reading a bundle")
}

// Directory reads the layout of a bundle of length bytes from its directory. It makes one or two
// reads. content is the bundle's bytes.
func Directory(
	ctx context.Context,
	content io.ReadSeeker,
	length int64,
) (*bundle.Layout, error) {
	return bundle.Read(ctx, func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		_, err := content.Seek(off, io.SeekStart)
		return io.NopCloser(io.LimitReader(content, n)), err
	}, length)
}

// Contents says what is in a bundle. It is empty for any other file.
type Contents struct {
	Entries int      `json:"entries,omitempty"` // files and folders
	Folders int      `json:"folders,omitempty"` // that have an entry
	First   []string `json:"first,omitempty"`   // the paths of the first files; of a long path only the last element
}

// firstFiles is how many files of a bundle its record names. A path of more than longestPath
// bytes is cut to its last element.
const firstFiles, longestPath = 10, 100

// Add counts an entry.
func (c *Contents) Add(entry string) {
	c.Entries++
	if strings.HasSuffix(entry, "/") {
		c.Folders++
		return
	}
	if len(entry) > longestPath {
		entry = path.Base(entry)
	}
	if len(c.First) < firstFiles {
		c.First = append(c.First, entry)
	}
}

// Files returns how many files a bundle has. Any other file counts as one. So does a bundle that
// has only folders, because it takes up a place as well.
func (c Contents) Files() int64 { return int64(max(1, c.Entries-c.Folders)) }

// checkBundle returns the contents of a bundle that has just been put together, and nothing for
// any other file. If the bundle is invalid, or has a different number of files than stated, the
// session ends.
func (s *Service) checkBundle(ctx context.Context, sess Session) (c Contents, err error) {
	if !sess.Bundle {
		return c, nil
	}
	content, err := s.Blobs.Open(ctx, blob.Files, sess.Blob)
	if err != nil {
		return c, fault.Wrap(err, "opening a bundle")
	}
	defer content.Close()
	layout, err := Directory(ctx, content, sess.Length)
	if err == nil {
		for _, e := range layout.Entries {
			c.Add(e.Path)
		}
	}
	if err == nil && sess.Files > 0 && c.Files() != sess.Files {
		err = fault.Parameter(
			"files", "the bundle has %d files, but %d were stated; begin a new upload", c.Files(), sess.Files,
		)
	}
	bad := BundleFault(err)
	if fault.Is(bad, fault.Invalid) {
		if err := s.endMismatched(ctx, sess); err != nil {
			return c, err
		}
	}
	return c, bad
}
