package file

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// signedFor is how long a redirect to the store is valid.
const signedFor = 60 * time.Second

// lost adds the request's id to an error about lost bytes, so that the caller can report it and the
// operator can find the cause in the log.
func (d *download) lost(err error) error {
	if errors.Is(err, files.ErrLost) {
		return &fault.Fault{
			Kind:   fault.Lost,
			Detail: wire.LostBytes + fault.LogID(d.r.Context()),
			Cause:  err,
		}
	}
	return err
}

// bytes sends the bytes, or redirects to the store, and notes the outcome.
func (d *download) bytes() error {
	f := d.link.File
	sum, err := checksum(f)
	if err != nil {
		return err
	}
	redirects, err := d.begin(f.Length, etag(f))
	if err != nil {
		return err
	}
	// S3 sends this header only if a request header asks for it, which few clients would send.
	d.w.Header().Set("X-Amz-Checksum-Crc64nvme", wire.CRC64Text(sum))
	if redirects {
		url, err := d.files.SignGet(d.r.Context(), f, d.reread, signed(f))
		if err == nil {
			d.sendAway(url)
		}
		return err
	}
	body, err := d.files.Open(d.r.Context(), f, d.reread)
	if err != nil {
		return err
	}
	defer body.Close()
	return d.send(content{
		file:   f,
		tag:    etag(f),
		sum:    binary.BigEndian.AppendUint64(nil, sum),
		newSum: newCRC64,
		wrong:  files.ErrLost,
		body:   body,
		knower: d.ports.Known,
	})
}

func newCRC64() hash.Hash { return crc64nvme.New() }

// begin reports whether a request is answered with a redirect to the store. It returns a fault if
// the link may not give as many bytes as the answer costs.
func (d *download) begin(length int64, tag string) (redirects bool, err error) {
	if !d.isGet { // the address is signed for GET alone
		return false, nil
	}
	redirects = d.ports.RedirectOver > 0 &&
		length > d.ports.RedirectOver &&
		!envelope.IsWithin(d.r.Context())
	n := rangeBytes(d.ranges, length)
	switch {
	case redirects:
		n = min(max(n, (length+15)/16), length) // the address gives access to all of the file
	case d.ifRange != "" && d.ifRange != tag: // then the range is ignored
		n = length
	}
	return redirects, d.mayGive(n)
}

// mayGive returns a fault if the link may not give n bytes more, or else counts them as begun.
func (d *download) mayGive(n int64) error {
	err := d.links.MayGive(d.link, n)
	if err == nil {
		d.used.Begun += n
	}
	return err
}

// send sends the content, or the ranges of it that the request asks for, and notes the outcome.
func (d *download) send(c content) error {
	f := c.file
	setHeaders(d.w.Header(), f, c.tag)
	sent := &answer{ResponseWriter: d.w, content: c, get: d.isGet}
	request, atEnd := inBytes(d.r, f.Length)
	http.ServeContent(sent, request, "", time.UnixMilli(f.Modified), c.body)
	caller := fault.CallerOf(d.r.Context())
	d.used.Bytes = caller.Sent
	if err := sent.fault(); err != nil {
		return err
	}
	d.used.Whole = caller.Status == http.StatusOK && caller.Sent == f.Length
	if length := d.w.Header().Get("Content-Length"); atEnd &&
		caller.Status == http.StatusPartialContent {
		d.used.Source = identity.Source(d.r)
		d.used.Whole = length == strconv.FormatInt(caller.Sent, 10)
	}
	return nil
}

// reread reads the link's file again.
func (d *download) reread(ctx context.Context) (files.File, error) {
	return d.links.FindAgain(ctx, d.link)
}

func setHeaders(h http.Header, f files.File, tag string) {
	h.Set("Content-Type", contentType(f))
	h.Set("Content-Disposition", wire.Attachment(f.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	if f.SHA256 != nil {
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(f.SHA256)+":")
	}
}

func etag(f files.File) string { return fmt.Sprintf(`"%s-%x"`, f.CRC64, f.Length) }

func contentType(f files.File) string {
	return cmp.Or(f.Type, "application/octet-stream")
}

func signed(f files.File) blob.Signed {
	return blob.Signed{
		Expires:            signedFor,
		ContentType:        contentType(f),
		ContentDisposition: wire.Attachment(f.Name),
	}
}

// sendAway redirects to the store.
func (d *download) sendAway(url string) {
	d.redirect(url)
	d.used.Bytes = d.used.Begun
	d.used.Whole = true
	d.used.Source = identity.Source(d.r)
}

// redirect redirects to an address that is good for this request alone.
func (d *download) redirect(to string) {
	h := d.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	d.w.WriteHeader(http.StatusFound)
}
