package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob"
)

// resumes is how often in a row a broken connection is replaced, from where it
// broke, before a Read fails.
const resumes = 2

// object reads an object. It has the answer to one GetObject open at a time.
type object struct {
	ctx    context.Context
	client api
	location
	size   int64
	etag   *string
	answer io.ReadCloser // nil if there is none
	at     int64         // where in the object the answer goes on
	next   int64         // where the next Read begins
	closed bool
}

func open(ctx context.Context, client api, at location) (*object, error) {
	out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &at.bucket, Key: &at.key}, quiet)
	if hasCode(err, codeNoSuchKey) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("opening object %s: %w", at.key, err)
	}
	return &object{
		ctx: ctx, client: client, location: at,
		size: aws.ToInt64(out.ContentLength), etag: out.ETag, answer: out.Body,
	}, nil
}

// quiet stops the SDK from warning that it can't check a part of an object.
func quiet(o *s3.Options) { o.DisableLogOutputChecksumValidationSkipped = true }

// Read is as in io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.closed {
		return 0, fs.ErrClosed
	}
	if err := o.ctx.Err(); err != nil {
		return 0, err // bytes that came in before may still wait to be read
	}
	if len(p) == 0 {
		return 0, nil
	}
	for broken := 0; ; broken++ {
		n, err := o.read(p)
		if n > 0 || err == nil || err == io.EOF || o.ctx.Err() != nil || broken == resumes || o.next >= o.size {
			return n, err
		}
		o.drop()
	}
}

// read reads from one answer, the open one if it is at the right place.
func (o *object) read(p []byte) (int, error) {
	if o.answer != nil && o.at != o.next {
		o.drop()
	}
	if o.answer == nil {
		if o.next >= o.size {
			return 0, io.EOF
		}
		if err := o.ask(); err != nil {
			return 0, err
		}
	}
	n, err := o.answer.Read(p)
	o.at += int64(n)
	o.next = o.at
	if err == io.EOF && o.next < o.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		if n > 0 {
			o.drop() // the next Read sees whether it was for good
			return n, nil
		}
		return 0, fmt.Errorf("reading object %s at %d: %w", o.key, o.next, errors.Join(err, o.ctx.Err()))
	}
	return n, err
}

// ask requests the object from where the next Read begins.
func (o *object) ask() error {
	out, err := o.client.GetObject(o.ctx, &s3.GetObjectInput{
		Bucket: &o.bucket, Key: &o.key, Range: aws.String(fmt.Sprintf("bytes=%d-", o.next)), IfMatch: o.etag,
	}, quiet)
	if hasCode(err, codeNoSuchKey) {
		return blob.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("reading object %s at %d: %w", o.key, o.next, err)
	}
	o.answer, o.at = out.Body, o.next
	return nil
}

func (o *object) drop() {
	if o.answer != nil {
		o.answer.Close()
		o.answer = nil
	}
}

// Seek is as in io.Seeker. It makes no call.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.next
	case io.SeekEnd:
		offset += o.size
	default:
		return 0, fmt.Errorf("seeking object %s: unknown whence %d", o.key, whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seeking object %s: negative position", o.key)
	}
	o.next = offset
	return offset, nil
}

// Close ends reading.
func (o *object) Close() error {
	o.closed = true
	o.drop()
	return nil
}
