package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ferry/shared/wire"
)

// span is a stretch of a file, From inclusive, To exclusive.
type span struct{ From, To int64 }

// origin is where the bytes of the file behind a link come from: the service, or
// the store that the service redirects to for a while.
type origin struct {
	client *Client
	link   string
	remote Remote
	verify Verify
	keep   func(claim string) error // is called with a claim before it is used

	mu sync.Mutex
	at string // the address to ask: the link, or the address of its claim

	store atomic.Pointer[address] // nil if the service sends the bytes or has to be asked
	tag   atomic.Value            // the store's ETag, so that all spans are of one file; "" if not known
}

// address is an address in a store, with the id of the request that was answered with it.
type address struct{ url, request string }

// head describes the file. It asks for the link's password if that is needed.
func (o *origin) head(ctx context.Context) (r Remote, err error) {
	r, err = o.client.Head(ctx, o.at)
	ended := o.at != o.link && hasStatus(err, 401)
	if ended {
		o.at = o.link
		r, err = o.client.Head(ctx, o.at)
	}
	if errors.Is(err, ErrPassword) {
		if o.at, err = o.client.unlock(ctx, o.link, err, o.verify.Password); err == nil {
			r, err = o.client.Head(ctx, o.at)
		}
	}
	if ended && err == nil { // otherwise the link has ended too
		o.verify.Reopened()
	}
	o.remote = r
	return r, err
}

func (o *origin) address() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

// reclaim returns the address to ask instead if an answer calls for it: the link redirects to a
// claim, or the claim has ended. Otherwise it returns "". If there are several connections, one
// makes the claim for all.
func (o *origin) reclaim(
	ctx context.Context,
	asked string,
	resp *http.Response,
) (next string, err error) {
	next = claimed(o.link, resp)
	ended := asked != o.link && resp.StatusCode == http.StatusUnauthorized
	if next == "" && !ended {
		return "", nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at != asked {
		return o.at, nil
	}
	if ended {
		if next, err = o.client.unlock(ctx, o.link, nil, o.verify.Password); err != nil {
			return "", err
		}
		o.verify.Reopened()
	}
	o.at = next
	return next, o.keep(next)
}

// reader reads a span of the file, with retries: each continues where the last answer ended. It is
// for one goroutine, and must be closed.
type reader struct {
	*origin
	span    // what is left to read
	ctx     context.Context
	watch   *watched      // of the open answer
	content io.ReadCloser // of the open answer, or nil
}

func (o *origin) read(ctx context.Context, s span) *reader {
	return &reader{origin: o, span: s, ctx: ctx}
}

func (r *reader) Read(b []byte) (n int, err error) {
	if r.From == r.To {
		return 0, io.EOF
	}
	err = r.client.retry.do(r.ctx, func() (err error) {
		n, err = r.try(b[:min(int64(len(b)), r.To-r.From)])
		return err
	})
	return n, err
}

// try reads from the open answer, or opens one.
func (r *reader) try(b []byte) (n int, err error) {
	if r.content == nil {
		r.watch = watch(r.ctx, idle)
		if r.content, err = r.open(r.watch.ctx, r.span); err != nil {
			r.watch.end()
			return 0, err
		}
	}
	n, err = r.content.Read(b)
	r.watch.Reset(idle)
	if n == 0 && err != nil {
		err = cause(r.watch.ctx, err)
		_ = r.Close()
		u, _ := url.Parse(r.link) // it has been requested, so it is valid
		return 0, again{error: &network{u.Host, err}}
	}
	r.From += int64(n)
	r.verify.Progress(int64(n))
	if r.From == r.To {
		_, _ = r.content.Read(make([]byte, 1)) // to the end, so that the connection can be reused
	}
	return n, nil
}

// Close closes the open answer. It never fails.
func (r *reader) Close() error {
	if r.content != nil {
		_ = r.content.Close()
		r.watch.end()
		r.content = nil
	}
	return nil
}

// copy hands the bytes of a span to write, piece by piece.
func (o *origin) copy(ctx context.Context, s span, write func([]byte) error) error {
	r := o.read(ctx, s)
	defer r.Close()
	_, err := io.CopyBuffer(writer(write), r, make([]byte, 256<<10))
	return err
}

// writer is a function as an io.Writer.
type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, fmt.Errorf("writing: %w", err)
	}
	return len(b), nil
}

// open requests a span, from the store if the service has redirected there. It renews an address in
// the store that has expired, or that no longer has a file, because the file may have moved. If
// even the new address has no file, the bytes are lost.
func (o *origin) open(ctx context.Context, s span) (io.ReadCloser, error) {
	store := o.store.Load()
	asked := store == nil
	if asked {
		resp, to, err := o.ask(ctx, s)
		if err != nil {
			return nil, err
		}
		if resp != nil {
			return o.body(resp, s)
		}
		store = to
	}
	resp, err := o.get(ctx, store.url, s, o.tag.Load().(string))
	if err != nil {
		return nil, err
	}
	body, err := o.body(resp, s)
	switch {
	case hasStatus(err, 400, 401, 403):
		o.store.CompareAndSwap(store, nil) // unless it was renewed meanwhile
		return nil, again{error: err}
	case hasStatus(err, 404) && !asked:
		o.store.CompareAndSwap(store, nil)
		return o.open(ctx, s)
	case hasStatus(err, 404):
		return nil, &Error{
			Status: http.StatusInternalServerError,
			Detail: wire.LostBytes + store.request,
		}
	}
	if tag := resp.Header.Get("ETag"); err == nil &&
		tag != "" &&
		!strings.HasPrefix(tag, "W/") {
		o.tag.CompareAndSwap("", tag)
	}
	return body, err
}

// ask requests a span from the service. It returns the response, or keeps and
// returns the address in a store that the service redirects to.
func (o *origin) ask(
	ctx context.Context,
	s span,
) (resp *http.Response, store *address, err error) {
	asked := o.address()
	resp, err = o.get(ctx, asked, s, o.remote.ETag)
	if err != nil {
		return nil, store, err
	}
	if next, err := o.reclaim(ctx, asked, resp); err != nil || next != "" {
		drain(resp.Body)
		if err == nil {
			resp, err = o.get(ctx, next, s, o.remote.ETag)
		}
		if err != nil {
			return nil, store, err
		}
	}
	if resp.StatusCode < 300 {
		return resp, store, nil
	}
	defer drain(resp.Body)
	to, err := resp.Location()
	switch {
	case !slices.Contains([]int{302, 303, 307}, resp.StatusCode):
		return nil, store, refusal(resp)
	case err != nil || resp.Request.URL.Scheme == "https" && to.Scheme != "https":
		return nil, store, fmt.Errorf("%w: it redirects to an invalid address", ErrAnswer)
	}
	store = &address{to.String(), resp.Header.Get("X-Request-Id")}
	o.store.Store(store)
	return nil, store, nil
}

// get requests a span of the file with this ETag. It requests a whole file without
// a range, so that the service compares it with its checksum.
func (o *origin) get(
	ctx context.Context,
	address string,
	s span,
	tag string,
) (*http.Response, error) {
	header := http.Header{}
	if s != (span{0, o.remote.Length}) {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.From, s.To-1))
		if tag != "" {
			header.Set("If-Range", tag)
		}
	}
	return o.client.getLink(ctx, http.MethodGet, address, header)
}

// body checks that a response has the bytes of the span, of the same file.
func (o *origin) body(resp *http.Response, s span) (_ io.ReadCloser, err error) {
	switch resp.StatusCode {
	case http.StatusOK:
		if s != (span{0, o.remote.Length}) ||
			resp.ContentLength >= 0 && resp.ContentLength != o.remote.Length {
			err = ErrChanged
		}
	case http.StatusPartialContent:
		if resp.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", s.From, s.To-1, o.remote.Length) {
			err = fmt.Errorf("%w: it has a different range", ErrAnswer)
		}
	case http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed:
		err = ErrChanged
	default:
		err = refusal(resp)
	}
	if err != nil {
		_ = resp.Body.Close() // it may be all of a large file
		return nil, err
	}
	return resp.Body, nil
}
