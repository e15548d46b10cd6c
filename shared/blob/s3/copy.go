package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/wire"
)

// copiesAtOnce bounds the parts of one copy that S3 makes at once, and allCopiesAtOnce those of
// all copies, because a function may have 1,024 connections open. Their bytes do not pass through
// this process.
const copiesAtOnce, allCopiesAtOnce = 64, 512

// uploadTries bounds how often a copy looks again at what another one has done.
const uploadTries = 3

// classOver is the size in bytes above which a copy gets the storage class of its bucket. On a
// smaller object GLACIER_IR saves less in 90 days than its copy costs extra.
const classOver = 256 << 10

// Copy implements blob.Store. It makes one call for an object of up to 5 GiB, and one for each
// 512 MiB of a larger one. If that is interrupted, a retry copies only the missing parts; until
// then the finished ones stay, like those of an upload, and keep the storage class. If the class
// depends on the size, it makes one more call.
func (s *Store) Copy(
	ctx context.Context,
	from blob.Area,
	fromKey string,
	to blob.Area,
	toKey string,
) error {
	source, err := s.locate(from, fromKey)
	target, targetErr := s.locate(to, toKey)
	if err = cmp.Or(err, targetErr); err != nil {
		return err
	}
	class, err := s.class(ctx, source, target)
	if err == nil {
		_, err = s.client.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket:       &target.bucket,
			Key:          &target.key,
			StorageClass: class,
			CopySource:   new(source.escaped()),
		})
	}
	refused := err
	return copying("object "+fromKey, func() error {
		// Only the text of this error says that the object is too large, so the object's size
		// decides.
		if hasCode(refused, codeInvalidRequest) {
			return s.copyInParts(ctx, source, target, refused)
		}
		return refused
	})
}

// copying calls try, and again if another copy has ended the upload in parts. what is copied.
func copying(what string, try func() error) (err error) {
	for range uploadTries {
		err = try()
		if !hasCode(err, codeNoSuchUpload) && !errors.Is(err, blob.ErrNoUpload) {
			break
		}
	}
	if hasCode(err, codeNoSuchKey, codeNotFound) {
		err = blob.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", what, err)
	}
	return nil
}

// class returns the storage class of a copy, which S3 never takes from the source.
func (s *Store) class(
	ctx context.Context,
	source, target location,
) (types.StorageClass, error) {
	class := s.classes[target.bucket]
	if class == "" || class == types.StorageClassStandard {
		return "", nil
	}
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &source.bucket,
		Key:    &source.key,
	})
	if err != nil || aws.ToInt64(head.ContentLength) <= classOver {
		return "", err
	}
	return class, nil
}

// escaped returns the location as the header of a copy needs it: S3 decodes it
// like a query, in which a plus means a space.
func (p location) escaped() string {
	folder, name, _ := strings.Cut(p.key, "/")
	return p.bucket + "/" + url.QueryEscape(folder) + "/" + url.QueryEscape(name)
}

// copyInParts copies an object that CopyObject refused. If the object is small,
// its size was not the reason, and the refusal is returned.
func (s *Store) copyInParts(ctx context.Context, source, target location, refused error) error {
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket:       &source.bucket,
		Key:          &source.key,
		ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return err
	}
	size := aws.ToInt64(head.ContentLength)
	if size <= s.sizes.copyPart {
		return refused
	}
	if done, err := s.head(ctx, target); err == nil && done.Size == size {
		return nil // an earlier try finished it
	}
	var sum *uint64
	if known, err := wire.ParseCRC64(aws.ToString(head.ChecksumCRC64NVME)); err == nil {
		sum = &known
	}
	u, err := s.copySpan(ctx, source, target, s.classes[target.bucket], 0, size, sum)
	if hasCode(err, codeNoSuchKey) { // the source is gone
		return errors.Join(err, u.clean(ctx))
	}
	return err
}

// rangeInMemory is the longest range in bytes that is read and written here: S3's UploadPartCopy
// takes ranges only of objects of more than 5 MB.
const rangeInMemory = 5 << 20

// copySmall copies a short range through memory.
func (s *Store) copySmall(ctx context.Context, source, target location, off, n int64) error {
	of := fmt.Sprintf("bytes=%d-%d", off, off+n-1)
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &source.bucket,
		Key:    &source.key,
		Range:  &of,
	})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	text := make([]byte, n)
	if _, err := io.ReadFull(out.Body, text); err != nil {
		return fmt.Errorf("reading a range: %w", err)
	}
	_, err = s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:            &target.bucket,
		Key:               &target.key,
		Body:              bytes.NewReader(text),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
	})
	return err
}

// CopyRange implements blob.Store. It makes one call to look for an earlier copy, three more to
// begin and end a new one, and one for each 512 MiB. A short range goes through memory, in two
// calls. The copy has the usual storage class: others are billed for longer than it stays.
func (s *Store) CopyRange(
	ctx context.Context,
	area blob.Area,
	key string,
	off, n int64,
	toKey string,
) error {
	source, err := s.locate(area, key)
	target, targetErr := s.locate(area, toKey)
	if err = cmp.Or(err, targetErr); err != nil {
		return err
	}
	return copying("a range of object "+key, func() error {
		done, err := s.head(ctx, target)
		if err == nil && done.Size == n {
			return nil
		}
		if n <= rangeInMemory {
			return s.copySmall(ctx, source, target, off, n)
		}
		_, err = s.copySpan(ctx, source, target, "", off, n, nil)
		return err
	})
}

// copySpan copies n bytes from the offset off in parts, and compares their checksum, unless that is
// nil. It returns the upload.
func (s *Store) copySpan(
	ctx context.Context, source, target location, class types.StorageClass, off, n int64, sum *uint64,
) (upload, error) {
	l := blob.Layout{
		Length:   n,
		PartSize: max(s.sizes.copyPart, (n+s.sizes.parts-1)/s.sizes.parts),
	}
	u, done, err := s.resume(ctx, target, class, l)
	if err != nil {
		return u, err
	}
	parts, err := u.copyParts(ctx, source, off, done)
	if err == nil {
		_, err = u.complete(ctx, parts, sum)
	}
	return u, err
}

// resume returns the upload in parts of an interrupted copy with the parts that it has made,
// or begins one.
func (s *Store) resume(
	ctx context.Context, target location, class types.StorageClass, l blob.Layout,
) (u upload, done []blob.Part, err error) {
	u = upload{s: s, at: target, layout: l}
	out, err := s.client.ListMultipartUploads(ctx,
		&s3.ListMultipartUploadsInput{Bucket: &target.bucket, Prefix: &target.key})
	if err != nil {
		return u, nil, fmt.Errorf("looking for an interrupted copy: %w", err)
	}
	for _, begun := range out.Uploads {
		if aws.ToString(begun.Key) == target.key {
			u.id = aws.ToString(begun.UploadId)
			done, err = u.List(ctx)
			return u, done, err
		}
	}
	u.id, err = s.begin(ctx, target, class, nil)
	return u, nil, err
}

func (u upload) copyParts(
	ctx context.Context,
	source location,
	off int64,
	done []blob.Part,
) ([]blob.Part, error) {
	l, parts := u.layout, make([]blob.Part, u.layout.Count())
	for _, p := range done {
		if p.Number <= len(parts) && p.Size == l.Size(p.Number) {
			parts[p.Number-1] = p
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for i := range parts {
		if parts[i].Number != 0 {
			continue
		}
		group.Go(func() error {
			select {
			case u.s.copies <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-u.s.copies }()
			number := int32(i + 1)
			first := off + l.Offset(i+1)
			size := l.Size(i + 1)
			of := fmt.Sprintf("bytes=%d-%d", first, first+size-1)
			out, err := u.s.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
				Bucket:          &u.at.bucket,
				Key:             &u.at.key,
				UploadId:        &u.id,
				PartNumber:      &number,
				CopySource:      new(source.escaped()),
				CopySourceRange: &of,
			})
			if err != nil {
				return fmt.Errorf("copying part %d: %w", number, err)
			}
			parts[i] = partOf(
				i+1,
				size,
				out.CopyPartResult.ETag,
				out.CopyPartResult.ChecksumCRC64NVME,
			)
			return nil
		})
	}
	return parts, group.Wait()
}
