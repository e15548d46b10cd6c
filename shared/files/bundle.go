package files

import (
	"context"
	"errors"
	"io"

	"ferry/shared/blob"
	"ferry/shared/bundle"
	"ferry/shared/fault"
)

// BundleType is the media type of a bundle.
const BundleType = "application/zip"

// BundleFault turns what makes something no bundle into a fault of its sender.
func BundleFault(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	if bad, ok := errors.AsType[*bundle.Error](err); ok {
		return &fault.Fault{Kind: fault.Invalid, Detail: bad.Error(), Cause: err}
	}
	return fault.Wrap(err, "reading a bundle")
}

// Directory returns what a bundle of so many bytes has, from its directory. It makes one or two
// reads. content is the bundle's bytes.
func Directory(ctx context.Context, content io.ReadSeeker, length int64) (*bundle.Layout, error) {
	return bundle.Read(ctx, func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		_, err := content.Seek(off, io.SeekStart)
		return io.NopCloser(io.LimitReader(content, n)), err
	}, length)
}

// checkBundle returns the number of entries of a bundle that has just been put together, or 0 for
// any other file. One that is not what it should be ends the session.
func (s *Service) checkBundle(ctx context.Context, sess Session) (entries int, err error) {
	if !sess.Bundle {
		return 0, nil
	}
	content, err := s.Blobs.Open(ctx, blob.Files, sess.Blob)
	if err != nil {
		return 0, fault.Wrap(err, "opening a bundle")
	}
	defer content.Close()
	layout, err := Directory(ctx, content, sess.Length)
	if bad := BundleFault(err); fault.Is(bad, fault.Invalid) {
		if err := s.endMismatched(ctx, sess); err != nil {
			return 0, err
		}
		return 0, bad
	} else if err != nil {
		return 0, bad
	}
	return len(layout.Entries), nil
}
