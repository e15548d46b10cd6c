package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	transfertypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ferry/shared/blob"
)

// uploadsAtOnce bounds the parts of one upload that are on the way together,
// each a copy in memory.
const uploadsAtOnce = 2

// cleanupTimeout bounds what is still done after an upload has failed, for
// which the caller's context may have ended.
const cleanupTimeout = 30 * time.Second

// maxPart is the largest part, in bytes, that S3 takes.
const maxPart = 5 << 30

// Create is described at blob.Store.
func (s *Store) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	at, err := s.place(area, key)
	if err != nil {
		return blob.Written{}, err
	}
	if size > s.sizes.parts*maxPart {
		return blob.Written{}, fmt.Errorf("creating object %s: S3 takes no object of %d bytes", key, size)
	}
	b := blob.NewBody(ctx, r, size)
	sealed := newSealer(s.client, at, b)
	if size > s.sizes.parts*s.sizes.part {
		err = s.stream(ctx, sealed, size)
	} else {
		err = s.upload(ctx, sealed)
	}
	switch {
	case err == nil:
		return b.Written(), nil
	case b.Err() != nil: // the cause of what else went wrong
		return blob.Written{}, fmt.Errorf("creating object %s: %w", key, b.Err())
	case hasCode(err, codePrecondition, codeConflict):
		return blob.Written{}, fmt.Errorf("creating object %s: %w", key, blob.ErrExists)
	}
	return blob.Written{}, fmt.Errorf("creating object %s: %w", key, err)
}

// upload makes the object in one call, or in parts that are kept in memory
// until S3 has them.
func (s *Store) upload(ctx context.Context, sealed *sealer) error {
	manager := transfermanager.New(sealed, func(o *transfermanager.Options) {
		o.MultipartUploadThreshold = s.sizes.single + 1
		o.PartSizeBytes = s.sizes.part
		o.MaxUploadParts = s.sizes.parts
		o.Concurrency = uploadsAtOnce
		o.FailTimeout = cleanupTimeout
	})
	_, err := manager.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket:            &sealed.at.bucket,
		Key:               &sealed.at.key,
		Body:              sealed.body,
		IfNoneMatch:       aws.String("*"),
		Metadata:          sealed.metadata(),
		ChecksumAlgorithm: transfertypes.ChecksumAlgorithm(types.ChecksumAlgorithmCrc64nvme),
		ChecksumType:      transfertypes.ChecksumTypeFullObject,
	})
	return errors.Join(err, sealed.failure)
}

// stream makes the object of parts so large that they are not kept in memory:
// each is sent while it is read. That needs TLS, as the checksum of a part
// comes behind it.
func (s *Store) stream(ctx context.Context, sealed *sealer, size int64) error {
	id, err := s.begin(ctx, sealed.at, sealed.metadata())
	if err != nil {
		return err
	}
	parts, err := s.streamParts(ctx, sealed, id, size)
	if err == nil {
		err = sealed.complete(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &sealed.at.bucket, Key: &sealed.at.key, UploadId: &id,
			IfNoneMatch: aws.String("*"), ChecksumType: types.ChecksumTypeFullObject,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
	}
	if err != nil {
		return errors.Join(err, clean(ctx, s.client, sealed.at, id))
	}
	return nil
}

func (s *Store) streamParts(ctx context.Context, sealed *sealer, id string, size int64) ([]types.CompletedPart, error) {
	var parts []types.CompletedPart
	partSize := (size + s.sizes.parts - 1) / s.sizes.parts
	for sent := int64(0); sent < size; sent += partSize {
		length := min(partSize, size-sent)
		number := int32(len(parts) + 1)
		out, err := sealed.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &sealed.at.bucket, Key: &sealed.at.key, UploadId: &id, PartNumber: &number,
			Body: io.LimitReader(sealed.body, length), ContentLength: &length,
			ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
		})
		if err != nil {
			return nil, fmt.Errorf("sending part %d: %w", number, err)
		}
		parts = append(parts, types.CompletedPart{PartNumber: &number, ETag: out.ETag})
	}
	// The body knows only at its end that it is not too long.
	if _, err := io.Copy(io.Discard, sealed.body); err != nil {
		return nil, err
	}
	return parts, nil
}

// begin starts an object made of parts.
func (s *Store) begin(ctx context.Context, at place, metadata map[string]string) (uploadID string, err error) {
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &at.bucket, Key: &at.key, Metadata: metadata,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme, ChecksumType: types.ChecksumTypeFullObject,
	})
	if err != nil {
		return "", fmt.Errorf("beginning an upload in parts: %w", err)
	}
	return aws.ToString(out.UploadId), nil
}

// clean removes the parts of an object that will not be, also when the
// caller's context has ended.
func clean(ctx context.Context, client api, at place, uploadID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return abort(ctx, client, at, uploadID)
}

// abort removes the parts of an upload. That it is over is no error.
func abort(ctx context.Context, client api, at place, uploadID string) error {
	_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &at.bucket, Key: &at.key, UploadId: &uploadID})
	if err != nil && !hasCode(err, codeNoSuchUpload) {
		return fmt.Errorf("removing the parts of an upload: %w", err)
	}
	return nil
}
