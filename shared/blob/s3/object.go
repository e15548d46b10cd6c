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

// resumes is how many times in a row a Read resumes after a broken connection, from where it
// broke, before it fails.
const resumes = 2

// object reads an object. It has at most one GetObject's answer open.
type object struct {
	ctx    context.Context
	client *s3.Client
	location
	size   int64
	etag   *string
	answer io.ReadCloser // nil if none is open
	at     int64         // where in the object the next byte of answer is
	next   int64         // where in the object the next Read begins
	closed bool
}

// quiet stops the SDK from warning that it can't check a part of an object.
func quiet(o *s3.Options) { o.DisableLogOutputChecksumValidationSkipped = true }

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.closed {
		return 0, fs.ErrClosed
	}
	if err := o.ctx.Err(); err != nil {
		return 0, err // even if bytes have already come in
	}
	if len(p) == 0 {
		return 0, nil
	}
	for broken := 0; ; broken++ {
		n, err := o.read(p)
		if n > 0 ||
			err == nil ||
			err == io.EOF ||
			o.ctx.Err() != nil ||
			broken == resumes ||
			o.next >= o.size {
			return n, err
		}
		o.drop()
	}
}

// read reads from one answer: the open one, if it is at the right place.
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
			o.drop() // the next Read finds out whether it lasts
			return n, nil
		}
		return 0, fmt.Errorf("reading object %s at %d: %w",
			o.key, o.next, errors.Join(err, o.ctx.Err()))
	}
	return n, err
}

// ask requests the object from where the next Read begins. It asks for no range
// at the start: an empty object has none.
func (o *object) ask() error {
	input := &s3.GetObjectInput{Bucket: &o.bucket, Key: &o.key, IfMatch: o.etag}
	if o.next > 0 {
		input.Range = new(fmt.Sprintf("bytes=%d-", o.next))
	}
	out, err := o.client.GetObject(o.ctx, input, quiet)
	if hasCode(err, codeNoSuchKey) {
		return blob.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("reading object %s at %d: %w", o.key, o.next, err)
	}
	o.answer, o.at = out.Body, o.next
	if o.next == 0 {
		o.size, o.etag = aws.ToInt64(out.ContentLength), out.ETag
	}
	return nil
}

func (o *object) drop() {
	if o.answer != nil {
		o.answer.Close()
		o.answer = nil
	}
}

// Seek implements io.Seeker. It makes no call.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	origins := map[int]int64{io.SeekStart: 0, io.SeekCurrent: o.next, io.SeekEnd: o.size}
	origin, known := origins[whence]
	if !known || origin+offset < 0 {
		return 0, fmt.Errorf("seeking object %s: no position %d from whence %d",
			o.key, offset, whence)
	}
	o.next = origin + offset
	return o.next, nil
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.closed = true
	o.drop()
	return nil
}
