package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ferry/shared/blob"
	"ferry/shared/retry"
	"ferry/shared/wire"
)

// upload is a handle for an upload. It implements blob.Upload.
type upload struct {
	s       *Store
	at      location
	id      string
	layout  blob.Layout
	invalid error // what is wrong with its area or key
}

// Upload implements blob.Parts.
func (s *Store) Upload(area blob.Area, key, id string, l blob.Layout) blob.Upload {
	at, err := s.locate(area, key)
	return upload{s, at, id, l, err}
}

// Begin implements blob.Parts. It makes one call.
func (s *Store) Begin(
	ctx context.Context,
	area blob.Area,
	key string,
	l blob.Layout,
) (string, error) {
	at, err := s.locate(area, key)
	if err == nil {
		err = l.Check(s.Limits())
	}
	if err != nil {
		return "", err
	}
	return s.begin(ctx, at, s.classes[at.bucket], nil)
}

// Sign implements blob.Upload. It makes no call. The size and the checksum
// are signed as headers, because S3 ignores a checksum in the query.
func (u upload) Sign(
	ctx context.Context,
	number int,
	sum *uint64,
	expires time.Duration,
) (blob.SignedPart, error) {
	if err := cmp.Or(u.invalid, u.layout.CheckNumber(number), checkExpires(expires)); err != nil {
		return blob.SignedPart{}, err
	}
	input := &s3.UploadPartInput{
		Bucket:            &u.at.bucket,
		Key:               &u.at.key,
		UploadId:          &u.id,
		PartNumber:        new(int32(number)),
		ContentLength:     new(u.layout.Size(number)),
		ChecksumCRC64NVME: sumText(sum),
	}
	req, err := u.s.presign.PresignUploadPart(
		ctx,
		input,
		s3.WithPresignExpires(expires),
		unhoisted,
	)
	if err != nil {
		return blob.SignedPart{}, fmt.Errorf("signing part %d of object %s: %w",
			number, u.at.key, err)
	}
	signed := blob.SignedPart{Method: req.Method, URL: req.URL, Header: map[string]string{}}
	for name, values := range req.SignedHeader {
		name = http.CanonicalHeaderKey(name)
		if name != "Host" && name != "Content-Length" { // every client sends them anyway
			signed.Header[name] = values[0]
		}
	}
	return signed, nil
}

// sumText returns a checksum in S3's form, or nil if it is unknown.
func sumText(sum *uint64) *string {
	if sum == nil {
		return nil
	}
	return new(wire.CRC64Text(*sum))
}

// unhoisted makes the SDK sign headers as headers, and keeps it from adding a
// checksum, which would be that of an empty body.
func unhoisted(o *s3.PresignOptions) {
	o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	})
	o.Presigner = v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableHeaderHoisting = true
		o.DisableURIPathEscaping = true
	})
}

// Write implements blob.Upload: it is not supported, as bytes go to S3 directly.
func (u upload) Write(
	_ context.Context,
	number int,
	_ io.Reader,
	_ *uint64,
) (blob.Part, error) {
	return blob.Part{}, cmp.Or(u.invalid, u.layout.CheckNumber(number), blob.ErrUnsupported)
}

// List implements blob.Upload. It makes one call for each 1,000 parts.
func (u upload) List(ctx context.Context) (parts []blob.Part, err error) {
	if u.invalid != nil {
		return nil, u.invalid
	}
	input := &s3.ListPartsInput{Bucket: &u.at.bucket, Key: &u.at.key, UploadId: &u.id}
	for pages := s3.NewListPartsPaginator(u.s.client, input); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if hasCode(err, codeNoSuchUpload) {
			return nil, blob.ErrNoUpload
		}
		if err != nil {
			return nil, fmt.Errorf("listing the parts of object %s: %w", u.at.key, err)
		}
		for _, p := range out.Parts {
			parts = append(
				parts,
				partOf(
					int(aws.ToInt32(p.PartNumber)),
					aws.ToInt64(p.Size),
					p.ETag,
					p.ChecksumCRC64NVME,
				),
			)
		}
	}
	return parts, nil
}

// partOf returns a part with the tag and the checksum that S3 has answered.
func partOf(number int, size int64, tag, checksum *string) blob.Part {
	sum, err := wire.ParseCRC64(aws.ToString(checksum))
	return blob.Part{
		Number: number,
		Size:   size,
		Tag:    aws.ToString(tag),
		Sum:    sum,
		HasSum: err == nil,
	}
}

// Complete implements blob.Upload. It makes one call for each 1,000 parts
// and one more; a repetition makes two. If parts are missing, it looks five times.
func (u upload) Complete(ctx context.Context, sum *uint64) (blob.Written, error) {
	if err := u.layout.Check(u.s.Limits()); err != nil {
		return blob.Written{}, err
	}
	parts, err := u.allParts(ctx)
	if errors.Is(err, blob.ErrNoUpload) {
		return u.completed(ctx, sum)
	}
	if err != nil {
		return blob.Written{}, err
	}
	whole := cmp.Or(combineSums(parts), sum)
	if sum != nil && *sum != *whole {
		return blob.Written{}, &blob.SumError{Got: *whole, Stated: *sum}
	}
	written, err := u.complete(ctx, parts, whole)
	if hasCode(err, codeNoSuchUpload) { // another call was faster, or an answer was lost
		return u.completed(ctx, sum)
	}
	if err != nil {
		return blob.Written{}, fmt.Errorf("completing object %s: %w", u.at.key, err)
	}
	return written, nil
}

// allParts lists the parts, or returns an error if any is missing. If another call is
// completing the upload, a server other than S3 may already have removed some
// of them, so allParts looks again for a moment until the upload is gone.
func (u upload) allParts(ctx context.Context) (parts []blob.Part, err error) {
	backoff := retry.Backoff{
		First:   50 * time.Millisecond,
		Longest: 400 * time.Millisecond,
		Steady:  true,
		Tries:   5,
	}
	for range backoff.Loop(ctx) {
		parts, err = u.List(ctx)
		if err == nil {
			err = u.layout.Missing(parts)
		}
		if _, missing := errors.AsType[*blob.MissingError](err); !missing {
			return parts, err
		}
	}
	return parts, cmp.Or(ctx.Err(), err)
}

// completion returns the call that makes the object. It makes S3 check the object's size, and its
// checksum if that is known.
func (u upload) completion(parts []blob.Part, sum *uint64) *s3.CompleteMultipartUploadInput {
	input := &s3.CompleteMultipartUploadInput{
		Bucket:   &u.at.bucket,
		Key:      &u.at.key,
		UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: make(
			[]types.CompletedPart,
			len(parts),
		)},
		MpuObjectSize:     &u.layout.Length,
		ChecksumType:      types.ChecksumTypeFullObject,
		ChecksumCRC64NVME: sumText(sum),
	}
	for i, p := range parts {
		named := types.CompletedPart{PartNumber: new(int32(p.Number)), ETag: new(p.Tag)}
		if p.HasSum {
			named.ChecksumCRC64NVME = new(wire.CRC64Text(p.Sum))
		}
		input.MultipartUpload.Parts[i] = named
	}
	return input
}

func (u upload) complete(
	ctx context.Context,
	parts []blob.Part,
	sum *uint64,
) (blob.Written, error) {
	out, err := u.s.client.CompleteMultipartUpload(ctx, u.completion(parts, sum))
	if err != nil {
		return blob.Written{}, err
	}
	if stored, err := wire.ParseCRC64(aws.ToString(out.ChecksumCRC64NVME)); err == nil {
		sum = &stored
	}
	if sum == nil {
		return u.completed(ctx, nil)
	}
	return blob.Written{Size: u.layout.Length, CRC64NVME: *sum}, nil
}

// completed describes the object that the upload became, or returns
// ErrNoUpload. If another call is completing it, a server may have dropped the
// upload but not show the object yet, so completed looks again for a second.
func (u upload) completed(ctx context.Context, stated *uint64) (blob.Written, error) {
	backoff := retry.Backoff{
		First:   time.Second / 32,
		Longest: time.Second / 2,
		Steady:  true,
		Tries:   6,
	}
	for range backoff.Loop(ctx) {
		written, err := u.s.head(ctx, u.at)
		switch {
		case err == nil && written.Size != u.layout.Length:
			return blob.Written{}, blob.ErrNoUpload
		case err == nil && stated != nil && *stated != written.CRC64NVME:
			return blob.Written{}, &blob.SumError{Got: written.CRC64NVME, Stated: *stated}
		case !errors.Is(err, blob.ErrNotFound):
			return written, err
		}
	}
	return blob.Written{}, cmp.Or(ctx.Err(), blob.ErrNoUpload)
}

// Limits implements blob.Parts.
func (s *Store) Limits() blob.Limits { return blob.S3Limits() }

// Describe implements blob.Store.
func (s *Store) Describe(
	ctx context.Context,
	area blob.Area,
	key string,
) (blob.Written, error) {
	at, err := s.locate(area, key)
	if err != nil {
		return blob.Written{}, err
	}
	return s.head(ctx, at)
}

// head describes an object, or returns ErrNotFound.
func (s *Store) head(ctx context.Context, at location) (blob.Written, error) {
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket:       &at.bucket,
		Key:          &at.key,
		ChecksumMode: types.ChecksumModeEnabled,
	})
	if hasCode(err, codeNoSuchKey, codeNotFound) {
		return blob.Written{}, blob.ErrNotFound
	}
	if err != nil {
		return blob.Written{}, fmt.Errorf("looking for object %s: %w", at.key, err)
	}
	sum, err := wire.ParseCRC64(aws.ToString(head.ChecksumCRC64NVME))
	if err != nil {
		return blob.Written{}, fmt.Errorf("the checksum of object %s: %w: %w",
			at.key, blob.ErrUnsupported, err)
	}
	return blob.Written{Size: aws.ToInt64(head.ContentLength), CRC64NVME: sum}, nil
}

// Abort implements blob.Upload. It makes one call.
func (u upload) Abort(ctx context.Context) error {
	if u.invalid != nil {
		return u.invalid
	}
	input := &s3.AbortMultipartUploadInput{
		Bucket:   &u.at.bucket,
		Key:      &u.at.key,
		UploadId: &u.id,
	}
	_, err := u.s.client.AbortMultipartUpload(ctx, input)
	if err != nil && !hasCode(err, codeNoSuchUpload) {
		return fmt.Errorf("removing the parts of an upload: %w", err)
	}
	return nil
}

// Sweep implements blob.Store. It removes uploads in parts that were neither
// completed nor aborted, which S3 charges for. It cannot tell those of a Create
// from those of Begin, so it leaves all of them alone for PartsLife.
func (s *Store) Sweep(
	ctx context.Context,
	before time.Time,
	found func(name string) bool,
) (removed int, err error) {
	for area := range s.buckets {
		n, err := s.sweepArea(ctx, area, before.Add(-blob.PartsLife), found)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweeping %s: %w", area, err)
		}
	}
	return removed, nil
}

func (s *Store) sweepArea(
	ctx context.Context, area blob.Area, before time.Time, found func(name string) bool,
) (removed int, err error) {
	bucket := s.buckets[area]
	input := &s3.ListMultipartUploadsInput{Bucket: &bucket}
	for {
		out, err := s.client.ListMultipartUploads(ctx, input)
		if err != nil {
			return removed, fmt.Errorf("listing unfinished uploads: %w", err)
		}
		for _, u := range out.Uploads {
			key := aws.ToString(u.Key)
			if !aws.ToTime(u.Initiated).Before(before) ||
				found != nil && !found(string(area)+"/"+key) {
				continue
			}
			unfinished := upload{s: s, at: location{bucket, key}, id: aws.ToString(u.UploadId)}
			if err := unfinished.Abort(ctx); err != nil {
				return removed, err
			}
			removed++
		}
		if !aws.ToBool(out.IsTruncated) || aws.ToString(out.NextKeyMarker) == "" {
			return removed, nil
		}
		input.KeyMarker, input.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}

// combineSums returns the checksum of an object made of these parts, or nil if that of
// one is unknown.
func combineSums(parts []blob.Part) *uint64 {
	var sum uint64
	for _, p := range parts {
		if !p.HasSum {
			return nil
		}
		sum = wire.CombineCRC64(sum, p.Sum, p.Size)
	}
	return &sum
}
