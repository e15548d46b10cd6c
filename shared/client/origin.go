package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// span is a stretch of a file, From inclusive, To exclusive.
type span struct{ From, To int64 }

// origin gives the bytes of the file behind a link: those of the service, or
// of the store that the service refers to for a while.
type origin struct {
	client *Client
	link   string
	remote Remote

	mu    sync.Mutex
	store string // address in the store; empty if the service gives the bytes or it has to be asked
	tag   string // the store's ETag of the file
}

func (c *Client) origin(link string, r Remote) *origin {
	return &origin{client: c, link: link, remote: r}
}

// refers asks whether the bytes come from a store, which takes several
// connections; it counts as no download of a service that gives them itself.
func (o *origin) refers(ctx context.Context) (store bool, err error) {
	if o.remote.Length == 0 {
		return false, nil
	}
	err = o.client.retry.do(ctx, func() error {
		w := watch(ctx, o.client.idle)
		defer w.end()
		resp, err := o.get(w.ctx, o.link, span{0, 1}, o.remote.ETag)
		if err != nil {
			return err
		}
		defer drain(resp.Body)
		store, err = o.referred(resp)
		return err
	})
	return store, err
}

// copy hands the bytes of a span to write, piece by piece with their places, and
// returns how many there were. An error after some of them may be tried again.
func (o *origin) copy(ctx context.Context, s span, write func(b []byte, at int64) error, progressed func(int64)) (n int64, err error) {
	if s.From == s.To {
		return 0, nil
	}
	w := watch(ctx, o.client.idle)
	defer w.end()
	body, err := o.open(w.ctx, s)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	buf := make([]byte, 256<<10)
	for s.From+n < s.To {
		got, err := body.Read(buf[:min(int64(len(buf)), s.To-s.From-n)])
		w.moved(o.client.idle)
		if got > 0 {
			if err := write(buf[:got], s.From+n); err != nil {
				return n, &local{fmt.Errorf("writing: %w", err)}
			}
			n += int64(got)
			progressed(int64(got))
		}
		if err != nil && s.From+n < s.To {
			return n, o.broken(w.ctx, err, n > 0)
		}
	}
	_, _ = body.Read(buf[:1]) // the end, so that the connection can be used again
	return n, nil
}

func (o *origin) broken(ctx context.Context, err error, some bool) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	err = &network{hostOf(o.link), cause(ctx, err)}
	if some {
		return progress{err}
	}
	return err
}

// open asks for a span, of the store if the service has referred to it. An
// address of the store that has ended is renewed.
func (o *origin) open(ctx context.Context, s span) (io.ReadCloser, error) {
	store, tag := o.place()
	if store == "" {
		resp, err := o.get(ctx, o.link, s, o.remote.ETag)
		if err != nil {
			return nil, err
		}
		referred, err := o.referred(resp)
		if err != nil || referred {
			drain(resp.Body)
		}
		if err != nil {
			return nil, err
		}
		if !referred {
			return o.body(resp, s)
		}
		store, tag = o.place()
	}
	resp, err := o.get(ctx, store, s, tag)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized {
		defer drain(resp.Body)
		o.forget(store)
		return nil, again{refusal(resp)}
	}
	body, err := o.body(resp, s)
	if err == nil {
		o.pin(resp.Header.Get("ETag"))
	}
	return body, err
}

// get asks for a span if it is of the file with this ETag. All of a file is
// asked for without a range, as that counts as a download.
func (o *origin) get(ctx context.Context, address string, s span, tag string) (*http.Response, error) {
	header := http.Header{}
	if s != (span{0, o.remote.Length}) {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.From, s.To-1))
		if tag != "" {
			header.Set("If-Range", tag)
		}
	}
	return o.client.getLink(ctx, http.MethodGet, address, header)
}

// referred reads where the service refers to, if it does, and its refusals.
func (o *origin) referred(resp *http.Response) (bool, error) {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return false, nil
	case http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect:
		to, err := resp.Location()
		if err != nil || resp.Request.URL.Scheme == "https" && to.Scheme != "https" {
			return false, fmt.Errorf("%w: it refers to nowhere", ErrAnswer)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.store = to.String()
		return true, nil
	}
	return false, refusal(resp)
}

// body checks that a response has the bytes of the span, of the same file.
func (o *origin) body(resp *http.Response, s span) (io.ReadCloser, error) {
	var err error
	switch resp.StatusCode {
	case http.StatusOK:
		if s != (span{0, o.remote.Length}) || resp.ContentLength >= 0 && resp.ContentLength != o.remote.Length {
			err = ErrChanged
		}
	case http.StatusPartialContent:
		text, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(s.From, 10)+"-")
		if !ok || !strings.HasSuffix(text, "/"+strconv.FormatInt(o.remote.Length, 10)) {
			err = fmt.Errorf("%w: it has another range", ErrAnswer)
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

func (o *origin) place() (store, tag string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.store, o.tag
}

// forget drops an address that has ended, unless another has come for it.
func (o *origin) forget(store string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.store == store {
		o.store = ""
	}
}

// pin keeps the store's ETag, so that all ranges are of one file.
func (o *origin) pin(tag string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tag == "" && !strings.HasPrefix(tag, "W/") {
		o.tag = tag
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
