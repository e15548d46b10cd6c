package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	transfertypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ferry/shared/blob"
	"ferry/shared/wire"
)

// uploadsAtOnce bounds the parts of one upload that are sent at once, each from
// a copy in memory.
const uploadsAtOnce = 2

// cleanupTimeout bounds the work after a failed upload: the caller's context,
// which may have ended, does not.
const cleanupTimeout = 30 * time.Second

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	at, err := s.locate(area, key)
	if err != nil {
		return blob.Written{}, err
	}
	if size > s.sizes.parts*blob.MaxPartSize {
		return blob.Written{}, fmt.Errorf("creating object %s: %d bytes are more than S3 takes", key, size)
	}
	b := blob.NewBody(ctx, r, size)
	sealed := &sealer{api: s.client, at: at, body: b, mark: rand.Text(), sums: map[int32]*string{}}
	if size > s.sizes.parts*s.sizes.part {
		err = s.stream(ctx, sealed, size)
	} else {
		err = s.upload(ctx, sealed)
	}
	switch {
	case err == nil:
		return b.Written(), nil
	case b.Err() != nil: // the cause of any other error
		err = b.Err()
	case hasCode(err, codePrecondition, codeConflict):
		err = blob.ErrExists
	}
	return blob.Written{}, fmt.Errorf("creating object %s: %w", key, err)
}

// upload sends the object in one call, or in parts that stay in memory until S3
// has them.
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

// stream sends the object in parts too large for memory: each is sent while it
// is read. That needs TLS, because the checksum of a part follows its bytes.
func (s *Store) stream(ctx context.Context, sealed *sealer, size int64) error {
	id, err := s.begin(ctx, sealed.at, s.classes[sealed.at.bucket], sealed.metadata())
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

// begin starts an upload in parts, of an object over classOver if its bucket has a class.
func (s *Store) begin(ctx context.Context, at location, class types.StorageClass, metadata map[string]string) (uploadID string, err error) {
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &at.bucket, Key: &at.key, Metadata: metadata, StorageClass: class,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme, ChecksumType: types.ChecksumTypeFullObject,
	})
	if err != nil {
		return "", fmt.Errorf("beginning an upload in parts: %w", err)
	}
	return aws.ToString(out.UploadId), nil
}

// clean removes the parts of a failed upload, even if the caller's context has
// ended.
func clean(ctx context.Context, client api, at location, uploadID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return abort(ctx, client, at, uploadID)
}

// abort removes the parts of an upload. It is no error if the upload is over.
func abort(ctx context.Context, client api, at location, uploadID string) error {
	_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &at.bucket, Key: &at.key, UploadId: &uploadID})
	if err != nil && !hasCode(err, codeNoSuchUpload) {
		return fmt.Errorf("removing the parts of an upload: %w", err)
	}
	return nil
}

// markName is the metadata by which an upload recognizes its own object.
const markName = "upload"

// sealer is the client that uploads one object. It adds the checksum of the whole, which is
// known only at the end, to the call that makes the object appear. If that call fails, it checks
// whether the object is there after all: when an answer is lost, the SDK's retry is refused
// because the object exists.
type sealer struct {
	api
	at   location
	body *blob.Body
	mark string // random

	mu   sync.Mutex
	sums map[int32]*string // of the parts, by number

	failure error // of CompleteMultipartUpload
}

func (s *sealer) metadata() map[string]string { return map[string]string{markName: s.mark} }

// checksum returns the sum of the bytes read so far in S3's form.
func (s *sealer) checksum() string { return wire.CRC64Text(s.body.Written().CRC64NVME) }

// UploadPart keeps the checksum of the part, because transfermanager leaves out
// CRC64NVME when it lists the parts at the end.
func (s *sealer) UploadPart(ctx context.Context, in *s3.UploadPartInput, options ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	out, err := s.api.UploadPart(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[aws.ToInt32(in.PartNumber)] = out.ChecksumCRC64NVME
	return out, nil
}

// PutObject makes the object in one call.
func (s *sealer) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	in.ChecksumCRC64NVME = aws.String(s.checksum())
	var seen attempts
	out, err := s.api.PutObject(ctx, in, append(options, seen.watch)...)
	if err != nil {
		return &s3.PutObjectOutput{}, s.outcome(ctx, seen, err)
	}
	return out, s.compare(ctx, out.ChecksumCRC64NVME)
}

// CompleteMultipartUpload makes the object from its parts, or removes them. It
// keeps an error in failure, because transfermanager would write it to the
// process's standard log.
func (s *sealer) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, options ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	if err := s.complete(ctx, in, options...); err != nil {
		s.failure = errors.Join(err, clean(ctx, s.api, s.at, aws.ToString(in.UploadId)))
	}
	return &s3.CompleteMultipartUploadOutput{}, nil
}

func (s *sealer) complete(ctx context.Context, in *s3.CompleteMultipartUploadInput, options ...func(*s3.Options)) error {
	in.ChecksumCRC64NVME = aws.String(s.checksum())
	in.MpuObjectSize = aws.Int64(s.body.Written().Size)
	for i, part := range in.MultipartUpload.Parts {
		in.MultipartUpload.Parts[i].ChecksumCRC64NVME = s.sums[aws.ToInt32(part.PartNumber)]
	}
	var seen attempts
	out, err := s.api.CompleteMultipartUpload(ctx, in, append(options, seen.watch)...)
	if err != nil {
		return s.outcome(ctx, seen, err)
	}
	return s.compare(ctx, out.ChecksumCRC64NVME)
}

// outcome decides what a failure to make the object means. If an answer was
// lost and an object is there, its mark decides: with the upload's mark, the
// upload was done; with another, the key was taken.
func (s *sealer) outcome(ctx context.Context, seen attempts, failure error) error {
	if !seen.lost {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	out, err := s.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.at.bucket, Key: &s.at.key})
	switch {
	case err != nil:
		return failure
	case out.Metadata[markName] == s.mark:
		return nil
	}
	return blob.ErrExists
}

// compare removes the new object if S3 reports another checksum than the
// body's.
func (s *sealer) compare(ctx context.Context, got *string) error {
	if got == nil || *got == s.checksum() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.at.bucket, Key: &s.at.key})
	return errors.Join(fmt.Errorf("S3 stored different bytes: checksum %s, want %s", *got, s.checksum()), err)
}

// AbortMultipartUpload removes the parts of a failed upload. If the upload is
// over, it returns no error, which would hide why the upload failed.
func (s *sealer) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, _ ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return &s3.AbortMultipartUploadOutput{}, abort(ctx, s.api, s.at, aws.ToString(in.UploadId))
}

// attempts watches the attempts that the SDK makes at one call. The SDK asks
// about every failed attempt whether to retry it.
type attempts struct {
	aws.RetryerV2
	lost bool // a failed attempt may have been carried out
}

func (a *attempts) watch(o *s3.Options) { a.RetryerV2, o.Retryer = o.Retryer.(aws.RetryerV2), a }

// IsErrorRetryable implements aws.Retryer. Only an answer with a 4xx status says
// that nothing was done. (The SDK gives a broken connection this type too, with
// status 0.)
func (a *attempts) IsErrorRetryable(err error) bool {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	a.lost = a.lost || !ok || response.HTTPStatusCode()/100 != 4
	return a.RetryerV2.IsErrorRetryable(err)
}
