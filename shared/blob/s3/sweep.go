package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob"
)

// Sweep is described at blob.Store. What it removes are uploads in parts that
// were neither completed nor aborted, which S3 charges for. It cannot tell
// those of a Create from sessions of parts, and so gives all of them the time
// of a session.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		n, err := s.sweepArea(ctx, area, before.Add(-blob.PartsLife))
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweeping %s: %w", area, err)
		}
	}
	return removed, nil
}

func (s *Store) sweepArea(ctx context.Context, area blob.Area, before time.Time) (removed int, err error) {
	bucket, err := s.bucket(area)
	if err != nil {
		return 0, err
	}
	input := &s3.ListMultipartUploadsInput{Bucket: &bucket}
	for {
		out, err := s.client.ListMultipartUploads(ctx, input)
		if err != nil {
			return removed, fmt.Errorf("listing unfinished uploads: %w", err)
		}
		for _, u := range out.Uploads {
			if !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := abort(ctx, s.client, place{bucket, aws.ToString(u.Key)}, aws.ToString(u.UploadId)); err != nil {
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
