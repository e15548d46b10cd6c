package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
)

// copiesAtOnce bounds the parts of one copy that S3 makes at once. Their bytes
// do not pass through this process.
const copiesAtOnce = 8

// Copy implements blob.Store. It makes one call for an object of up to 5 GiB,
// and one for each 512 MiB of a larger one.
func (s *Store) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	source, err := s.locate(from, fromKey)
	if err != nil {
		return err
	}
	target, err := s.locate(to, toKey)
	if err != nil {
		return err
	}
	_, err = s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &target.bucket, Key: &target.key, CopySource: aws.String(source.escaped()),
	})
	// Only the text of this error says that the object is too large. Its size
	// decides.
	if hasCode(err, codeInvalidRequest) {
		err = s.copyInParts(ctx, source, target, err)
	}
	if hasCode(err, codeNoSuchKey, codeNotFound) {
		err = blob.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("copying object %s: %w", fromKey, err)
	}
	return nil
}

// escaped returns the location as the header of a copy needs it: S3 decodes it
// like a query, in which a plus means a space.
func (p location) escaped() string {
	owner, name, _ := strings.Cut(p.key, "/")
	return p.bucket + "/" + url.QueryEscape(owner) + "/" + url.QueryEscape(name)
}

// copyInParts copies an object that CopyObject refused. If the object is small,
// its size was not the reason, and the refusal is returned.
func (s *Store) copyInParts(ctx context.Context, source, target location, refused error) error {
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &source.bucket, Key: &source.key, ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return err
	}
	size := aws.ToInt64(head.ContentLength)
	if size <= s.sizes.copyPart {
		return refused
	}
	id, err := s.begin(ctx, target, nil)
	if err != nil {
		return err
	}
	parts, err := s.copyParts(ctx, source, target, id, size)
	if err == nil {
		_, err = s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &target.bucket, Key: &target.key, UploadId: &id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
			MpuObjectSize:   &size, ChecksumType: types.ChecksumTypeFullObject, ChecksumCRC64NVME: head.ChecksumCRC64NVME,
		})
	}
	if err != nil {
		return errors.Join(err, clean(ctx, s.client, target, id))
	}
	return nil
}

func (s *Store) copyParts(ctx context.Context, source, target location, id string, size int64) ([]types.CompletedPart, error) {
	partSize := max(s.sizes.copyPart, (size+s.sizes.parts-1)/s.sizes.parts)
	parts := make([]types.CompletedPart, (size+partSize-1)/partSize)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for i := range parts {
		group.Go(func() error {
			first := int64(i) * partSize
			last := min(first+partSize, size) - 1
			number := int32(i + 1)
			out, err := s.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
				Bucket: &target.bucket, Key: &target.key, UploadId: &id, PartNumber: &number,
				CopySource: aws.String(source.escaped()), CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", first, last)),
			})
			if err != nil {
				return fmt.Errorf("copying part %d: %w", number, err)
			}
			parts[i] = types.CompletedPart{
				PartNumber: &number, ETag: out.CopyPartResult.ETag, ChecksumCRC64NVME: out.CopyPartResult.ChecksumCRC64NVME,
			}
			return nil
		})
	}
	return parts, group.Wait()
}
