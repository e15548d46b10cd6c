// Package s3 implements blob.Store and blob.Parts on S3, with one bucket for each
// area. Start reading with Open; parts.go has the sessions of parts.
//
// An upload of up to 8 MiB is one call. A larger one, or one of unknown size
// that turns out larger, is sent in parts, two at a time, and takes about
// 30 MiB of memory whatever its size. An upload of unknown size may have up to
// 48.8 GiB, one of announced size up to 48.8 TiB: above 48.8 GiB its parts are
// sent as they come in and cannot be retried. S3 gets the checksum of the whole
// object and refuses an object that differs.
//
// A random mark of the upload is stored with the bytes. If the answer to a Create
// is lost, the mark shows whether the object is the one it made.
//
// Opening and copying objects needs the permission s3:ListBucket as well as
// s3:GetObject: without it S3 answers 403, not 404, for a missing object.
package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"ferry/shared/blob"
)

const mib = 1 << 20

// maxExpires is the longest that S3 lets a signed URL live.
const maxExpires = 7 * 24 * time.Hour

// Buckets names the bucket of each area.
type Buckets map[blob.Area]string

// Store is a blob.Store in S3.
type Store struct {
	client  *s3.Client
	presign *s3.PresignClient
	buckets Buckets
	classes map[string]types.StorageClass // by bucket, of objects over classOver; none is STANDARD
	sizes   sizes
	copies  chan struct{} // one for each part that is being copied
}

// sizes are in bytes, except parts. Tests use smaller ones.
type sizes struct {
	single   int64 // the largest upload in one call
	part     int64 // a part of a larger upload
	parts    int64 // the most parts of an upload
	copyPart int64 // a part of a copy that is too large for one call
}

// New returns the store in these buckets. It makes no call.
func New(client *s3.Client, buckets Buckets) *Store {
	return &Store{
		client:  client,
		presign: s3.NewPresignClient(client),
		buckets: buckets,
		sizes:   sizes{single: 8 * mib, part: 5 * mib, parts: 10_000, copyPart: 512 * mib},
		copies:  make(chan struct{}, allCopiesAtOnce),
	}
}

func (s *Store) bucket(area blob.Area) (string, error) {
	bucket, ok := s.buckets[area]
	if !ok {
		return "", fmt.Errorf("blob: unknown area %q", area)
	}
	return bucket, nil
}

// location is where S3 keeps an object.
type location struct{ bucket, key string }

func (s *Store) locate(area blob.Area, key string) (location, error) {
	bucket, err := s.bucket(area)
	return location{bucket, key}, cmp.Or(err, blob.CheckKey(key))
}

// Local implements blob.Store.
func (s *Store) Local() bool { return false }

// Open implements blob.Store. It makes one call, whose answer serves reads from
// the start. Reading from another place costs one more call each time.
func (s *Store) Open(
	ctx context.Context,
	area blob.Area,
	key string,
) (io.ReadSeekCloser, error) {
	at, err := s.locate(area, key)
	if err != nil {
		return nil, err
	}
	o := &object{ctx: ctx, client: s.client, location: at}
	return o, o.ask()
}

// Delete implements blob.Store. It makes one call.
func (s *Store) Delete(ctx context.Context, area blob.Area, key string) error {
	at, err := s.locate(area, key)
	if err != nil {
		return err
	}
	if _, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.bucket, Key: &at.key}); err != nil {
		return fmt.Errorf("deleting object %s: %w", key, err)
	}
	return nil
}

// SetAside implements blob.Store. It makes one call.
func (s *Store) SetAside(ctx context.Context, area blob.Area, key string, _ time.Time) error {
	return s.Delete(ctx, area, key)
}

// List implements blob.Store. It makes one call, and more only if S3 ends a
// page early.
func (s *Store) List(
	ctx context.Context,
	area blob.Area,
	after string,
	limit int,
) ([]blob.Object, error) {
	bucket, err := s.bucket(area)
	if err == nil {
		err = blob.CheckLimit(limit)
	}
	if err != nil {
		return nil, err
	}
	input := &s3.ListObjectsV2Input{
		Bucket:     &bucket,
		MaxKeys:    new(int32(limit)),
		StartAfter: optional(after),
	}
	var objects []blob.Object
	for pages := s3.NewListObjectsV2Paginator(s.client, input); len(objects) < limit &&
		pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing objects in %s: %w", area, err)
		}
		for _, o := range out.Contents {
			objects = append(objects, blob.Object{
				Key:      aws.ToString(o.Key),
				Size:     aws.ToInt64(o.Size),
				Modified: aws.ToTime(o.LastModified),
			})
		}
	}
	return objects[:min(len(objects), limit)], nil
}

// SignGet implements blob.Store. A URL may live for 7 days, but no longer than
// the credentials that sign it.
func (s *Store) SignGet(
	ctx context.Context,
	area blob.Area,
	key string,
	sig blob.Signed,
) (string, error) {
	at, err := s.locate(area, key)
	if err == nil {
		err = checkExpires(sig.Expires)
	}
	if err != nil {
		return "", err
	}
	input := &s3.GetObjectInput{
		Bucket:                     &at.bucket,
		Key:                        &at.key,
		ResponseContentType:        optional(sig.ContentType),
		ResponseContentDisposition: optional(sig.ContentDisposition),
	}
	req, err := s.presign.PresignGetObject(
		ctx,
		input,
		s3.WithPresignExpires(sig.Expires),
		plain,
	)
	if err != nil {
		return "", fmt.Errorf("signing the URL of object %s: %w", key, err)
	}
	return req.URL, nil
}

func checkExpires(d time.Duration) error {
	if d <= 0 || d > maxExpires {
		return fmt.Errorf("blob: a signed URL cannot expire after %s", d)
	}
	return nil
}

// optional returns a parameter, or nil for one to leave out.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// plain keeps the SDK from asking, in the signed URL, for checksums that an
// ordinary client would not check.
func plain(o *s3.PresignOptions) {
	o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
}

// Codes of errors for which the SDK has no type, or not in every operation.
const (
	codeNoSuchKey      = "NoSuchKey"
	codeNotFound       = "NotFound" // of HeadObject, which has no body to say more
	codeNoSuchUpload   = "NoSuchUpload"
	codePrecondition   = "PreconditionFailed"
	codeConflict       = "ConditionalRequestConflict" // someone else is creating the object right now
	codeInvalidRequest = "InvalidRequest"
)

func hasCode(err error, codes ...string) bool {
	failure, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, failure.ErrorCode())
}

// Open returns the store in these buckets. Copies of more than 256 KiB in the backup
// area have the storage class backupClass; empty is STANDARD. With an endpoint
// configured, S3 is a stand-in that has no host name for each bucket.
func Open(c aws.Config, files, backup, backupClass string) *Store {
	client := s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	s := New(client, Buckets{blob.Files: files, blob.Backup: backup})
	s.classes = map[string]types.StorageClass{backup: types.StorageClass(backupClass)}
	return s
}
