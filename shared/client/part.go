package client

import (
	"context"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/minio/crc64nvme"
)

// SendPart sends one part. The service refuses bytes that are not those that
// the part was signed for. Nothing is repeated.
func (c *Client) SendPart(ctx context.Context, p SignedPart, content io.Reader) error {
	return c.sendPart(ctx, p, content, func(int64) {})
}

func (c *Client) sendPart(ctx context.Context, p SignedPart, content io.Reader, progress func(int64)) (err error) {
	w := watch(ctx, c.idle)
	defer w.end()
	body := &sending{r: content, watch: w, progress: progress, size: p.Size, wait: 5 * c.idle}
	req, err := http.NewRequestWithContext(w.ctx, p.Method, p.URL, body)
	if err != nil {
		return fmt.Errorf("%w: the address of a part: %v", ErrAnswer, err)
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	if req.ContentLength = p.Size; p.Size == 0 {
		req.Body = http.NoBody
	}
	resp, err := c.send(req)
	if err == nil {
		defer drain(resp.Body)
		if resp.StatusCode < 300 {
			return nil
		}
		err = partRefusal(refusal(resp))
	}
	progress(-body.taken())
	if readErr := body.failed(); readErr != nil {
		return &local{fmt.Errorf("reading a part: %w", readErr)}
	}
	return err
}

// partRefusal lets what another signature or another try can mend be tried
// again: an address that has ended, bytes that were changed on the way, a part
// that an earlier try of it still holds.
func partRefusal(e *Error) error {
	switch e.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict:
		return again{e}
	}
	return e
}

// checksum is the CRC64NVME of all that r has, and how much that is.
func checksum(ctx context.Context, r io.Reader) (sum uint64, n int64, err error) {
	h := crc64nvme.New()
	n, err = hashAll(ctx, h, r)
	return h.Sum64(), n, err
}

// hashAll writes all of r to h, until the context ends.
func hashAll(ctx context.Context, h hash.Hash, r io.Reader) (n int64, err error) {
	buf := make([]byte, 256<<10)
	for ctx.Err() == nil {
		got, err := r.Read(buf)
		h.Write(buf[:got])
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, context.Cause(ctx)
}

// watched is a context that ends when nothing has moved for a while.
type watched struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

func watch(ctx context.Context, idle time.Duration) *watched {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watched{ctx, cancel, time.AfterFunc(idle, func() { cancel(errIdle) }), idle}
}

// moved starts the time anew, for as long as the next move may take.
func (w *watched) moved(next time.Duration) { w.timer.Reset(next) }

func (w *watched) end() {
	w.timer.Stop()
	w.cancel(nil)
}
