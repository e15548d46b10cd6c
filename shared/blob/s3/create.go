package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/wire"
)

// uploadsAtOnce bounds the parts of one upload that are sent at once, each from
// a copy in memory.
const uploadsAtOnce = 2

// cleanupTimeout bounds the work after a failed upload: the caller's context,
// which may have ended, does not.
const cleanupTimeout = 30 * time.Second

// creation is a Create in progress. The call that makes the object appear has the checksum of the
// whole. If that call fails, the creation checks whether the object is there after all: when an
// answer is lost, the SDK's retry is refused because the object exists.
type creation struct {
	upload // in parts, unless the object is small
	body   *blob.Body
	mark   string // random
}

// Create implements blob.Store.
func (s *Store) Create(
	ctx context.Context,
	area blob.Area,
	key string,
	r io.Reader,
	size int64,
) (blob.Written, error) {
	at, err := s.locate(area, key)
	if err != nil {
		return blob.Written{}, err
	}
	if size > s.sizes.parts*blob.MaxPartSize {
		return blob.Written{}, fmt.Errorf("creating object %s: %d bytes are more than S3 takes",
			key, size)
	}
	c := creation{upload{s: s, at: at}, blob.NewBody(ctx, r, size), rand.Text()}
	err = c.create(ctx, size)
	switch {
	case err == nil:
		return c.body.Written(), nil
	case c.body.Err() != nil: // the cause of any other error
		err = c.body.Err()
	case hasCode(err, codePrecondition, codeConflict):
		err = blob.ErrExists
	}
	return blob.Written{}, fmt.Errorf("creating object %s: %w", key, err)
}

// create sends a small object in one call, and a larger one in parts.
func (c creation) create(ctx context.Context, size int64) error {
	most := c.s.sizes.single
	if size >= 0 {
		most = min(size, most)
	}
	first, ended, err := c.body.Fill(make([]byte, most+1)) // the last byte shows whether there are more
	if err != nil {
		return err
	}
	if ended {
		return c.put(ctx, first)
	}
	if c.id, err = c.s.begin(ctx, c.at, c.s.classes[c.at.bucket], c.metadata()); err != nil {
		return err
	}
	all, send := io.MultiReader(bytes.NewReader(first), c.body), c.sendParts
	if size > c.s.sizes.parts*c.s.sizes.part {
		send = c.streamParts
	}
	parts, err := send(ctx, all, size)
	if err == nil {
		err = c.complete(ctx, parts)
	}
	if err != nil {
		return errors.Join(err, c.clean(ctx))
	}
	return nil
}

// sendParts sends parts from memory, several at once.
func (c creation) sendParts(
	ctx context.Context,
	all io.Reader,
	_ int64,
) (parts []blob.Part, err error) {
	g, inner := errgroup.WithContext(ctx)
	free := make(chan []byte, uploadsAtOnce+1) // buffers: one more is being filled
	for range cap(free) {
		free <- make([]byte, c.s.sizes.part)
	}
	parts = make([]blob.Part, c.s.sizes.parts)
	count := 0
	for ended := false; !ended && inner.Err() == nil; {
		buf := <-free
		n, _ := io.ReadFull(all, buf) // the body keeps the error
		ended = n < len(buf)
		if n == 0 || c.body.Err() != nil {
			break
		}
		if count++; count > len(parts) {
			err = fmt.Errorf("the object has more than %d parts", len(parts))
			break
		}
		number := count
		g.Go(func() (err error) {
			parts[number-1], err = c.sendPart(inner, number, bytes.NewReader(buf[:n]), int64(n))
			free <- buf
			return err
		})
	}
	sent := g.Wait()
	return parts[:min(count, len(parts))], cmp.Or(c.body.Err(), sent, err, ctx.Err())
}

// streamParts sends parts too large for memory: each is sent while it is read. That needs TLS,
// because the checksum of a part follows its bytes.
func (c creation) streamParts(
	ctx context.Context,
	all io.Reader,
	size int64,
) (parts []blob.Part, err error) {
	partSize := (size + c.s.sizes.parts - 1) / c.s.sizes.parts
	for sent := int64(0); sent < size; sent += partSize {
		length := min(partSize, size-sent)
		part, err := c.sendPart(ctx, len(parts)+1, io.LimitReader(all, length), length)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	_, err = io.Copy(io.Discard, all) // the body knows only at its end that it is not too long
	return parts, err
}

func (c creation) sendPart(
	ctx context.Context,
	number int,
	r io.Reader,
	size int64,
) (blob.Part, error) {
	n := int32(number)
	out, err := c.s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket:            &c.at.bucket,
		Key:               &c.at.key,
		UploadId:          &c.id,
		PartNumber:        &n,
		Body:              r,
		ContentLength:     &size,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
	})
	if err != nil {
		return blob.Part{}, fmt.Errorf("sending part %d: %w", number, err)
	}
	return partOf(number, size, out.ETag, out.ChecksumCRC64NVME), nil
}

// begin starts an upload in parts. In a bucket with a storage class the object is over classOver.
func (s *Store) begin(
	ctx context.Context, at location, class types.StorageClass, metadata map[string]string,
) (uploadID string, err error) {
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket:            &at.bucket,
		Key:               &at.key,
		Metadata:          metadata,
		StorageClass:      class,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
		ChecksumType:      types.ChecksumTypeFullObject,
	})
	if err != nil {
		return "", fmt.Errorf("beginning an upload in parts: %w", err)
	}
	return aws.ToString(out.UploadId), nil
}

// clean removes the parts of a failed upload, even if the caller's context has
// ended.
func (u upload) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return u.Abort(ctx)
}

// markName is the metadata by which an upload recognizes its own object.
const markName = "upload"

func (c creation) metadata() map[string]string { return map[string]string{markName: c.mark} }

// checksum returns the sum of the bytes read so far in S3's form.
func (c creation) checksum() string { return wire.CRC64Text(c.body.Written().CRC64NVME) }

// put makes the object in one call.
func (c creation) put(ctx context.Context, content []byte) error {
	var seen attempts
	out, err := c.s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:            &c.at.bucket,
		Key:               &c.at.key,
		Body:              bytes.NewReader(content),
		IfNoneMatch:       new("*"),
		Metadata:          c.metadata(),
		ChecksumCRC64NVME: new(c.checksum()),
	}, seen.watch)
	if err != nil {
		return c.outcome(ctx, seen, err)
	}
	return c.compare(ctx, out.ChecksumCRC64NVME)
}

// complete makes the object from its parts.
func (c creation) complete(ctx context.Context, parts []blob.Part) error {
	written := c.body.Written()
	c.layout.Length = written.Size
	input := c.completion(parts, &written.CRC64NVME)
	input.IfNoneMatch = new("*")
	var seen attempts
	out, err := c.s.client.CompleteMultipartUpload(ctx, input, seen.watch)
	if err != nil {
		return c.outcome(ctx, seen, err)
	}
	return c.compare(ctx, out.ChecksumCRC64NVME)
}

// outcome decides what a failure to make the object means. If an answer was
// lost and an object is there, its mark decides: with the upload's mark, the
// upload was done; with another, the key was taken.
func (c creation) outcome(ctx context.Context, seen attempts, failure error) error {
	if !seen.lost {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	out, err := c.s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &c.at.bucket,
		Key:    &c.at.key,
	})
	switch {
	case err != nil:
		return failure
	case out.Metadata[markName] == c.mark:
		return nil
	}
	return blob.ErrExists
}

// compare removes the new object if S3 reports another checksum than the
// body's.
func (c creation) compare(ctx context.Context, got *string) error {
	if got == nil || *got == c.checksum() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := c.s.client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket: &c.at.bucket,
		Key:    &c.at.key,
	})
	return errors.Join(
		fmt.Errorf("S3 stored different bytes: checksum %s, want %s", *got, c.checksum()),
		err,
	)
}

// attempts watches the attempts that the SDK makes at one call. The SDK asks
// about every failed attempt whether to retry it.
type attempts struct {
	aws.RetryerV2
	lost bool // a failed attempt may have been carried out
}

func (a *attempts) watch(o *s3.Options) {
	a.RetryerV2, o.Retryer = o.Retryer.(aws.RetryerV2), a
}

// IsErrorRetryable implements aws.Retryer. Only an answer with a 4xx status says
// that nothing was done. (The SDK gives a broken connection this type too, with
// status 0.)
func (a *attempts) IsErrorRetryable(err error) bool {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	a.lost = a.lost || !ok || response.HTTPStatusCode()/100 != 4
	return a.RetryerV2.IsErrorRetryable(err)
}
