package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// request is a call of the interface. It can be sent several times.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	json         any           // body, or
	form         url.Values    // body, or
	body         []byte        // body of the Content-Type in header
	anonymous    bool          // needs no bearer
	basic        *url.Userinfo // user and password instead of a bearer
	answered     *http.Header  // gets the header of the answer, if not nil
}

func (r request) needsBearer() bool { return !r.anonymous && r.basic == nil }

// envelope is the standard answer of the interface.
type envelope struct {
	Description string    `json:"description"`
	Bearer      string    `json:"bearer"`
	LinkURL     string    `json:"linkURL"`
	Files       []File    `json:"files"`
	Uploads     []Session `json:"uploads"`
}

// call sends a request, with retries, and reads the answer into into, which may be
// nil.
func (c *Client) call(ctx context.Context, r request, into any) error {
	return c.retry.do(ctx, func() error { return c.once(ctx, r, into) })
}

// get returns what is at a path, for the client's user.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return result[T](ctx, c, request{method: "GET", path: path, query: query})
}

// result sends a request, with retries, and returns the answer.
func result[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	err = c.call(ctx, r, &answer)
	return answer, err
}

// end removes what is at a path, for the client's user.
func (c *Client) end(ctx context.Context, path string, query url.Values) error {
	return c.call(ctx, request{method: "DELETE", path: path, query: query}, nil)
}

// once sends a request, and again with a new bearer if its bearer is refused.
func (c *Client) once(ctx context.Context, r request, into any) error {
	bearer, err := c.try(ctx, r, "", into)
	if r.needsBearer() && hasStatus(err, 401) {
		_, err = c.try(ctx, r, bearer, into)
	}
	return err
}

// try sends a request and returns the bearer that it carried.
func (c *Client) try(
	ctx context.Context,
	r request,
	refused string,
	into any,
) (bearer string, err error) {
	w := watch(ctx, 5*idle)
	defer w.end()
	req, err := c.build(w.ctx, r)
	if err != nil {
		return "", err
	}
	if r.needsBearer() {
		if bearer, err = c.authorize(w.ctx, refused); err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		if secret := c.GuestSecret(); secret != "" {
			req.Header.Set(guestHeader, secret)
		}
	}
	resp, err := c.send(req)
	if err != nil {
		return bearer, err
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return bearer, refusal(resp)
	}
	if r.answered != nil {
		*r.answered = resp.Header
	}
	return bearer, decode(resp, into)
}

// authorize returns a bearer other than the refused one.
func (c *Client) authorize(ctx context.Context, refused string) (string, error) {
	if c.login == nil {
		return "", ErrNoLogin
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bearer != "" && c.bearer != refused {
		return c.bearer, nil // another request has renewed it
	}
	bearer, err := c.login(ctx, refused)
	if err == nil {
		c.bearer = bearer
	}
	return bearer, err
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	body, kind := r.body, ""
	switch {
	case r.json != nil:
		text, err := json.Marshal(r.json)
		if err != nil {
			return nil, fmt.Errorf("writing a request: %w", err)
		}
		if bytes.Contains(bytes.ReplaceAll(text, []byte(`\\`), nil), []byte(`\ufffd`)) { // what Marshal makes of other bytes
			return nil, errors.New("a text in the request is not UTF-8")
		}
		body, kind = text, "application/json"
	case r.form != nil:
		body, kind = []byte(r.form.Encode()), "application/x-www-form-urlencoded"
	}
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	maps.Copy(req.Header, r.header)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.URL.User = r.basic // net/http makes this the Authorization field
	return req, nil
}

// send sends a request. Its errors do not show the query, which may hold a token.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "ferry")
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "*/*")
	}
	resp, err := c.http.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		return nil, &network{req.URL.Host, cause(req.Context(), u.Err)}
	}
	return resp, err
}

func decode(resp *http.Response, into any) error {
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &network{resp.Request.URL.Host, cause(resp.Request.Context(), err)}
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") ||
		json.Unmarshal(text, into) != nil {
		return ErrAnswer
	}
	return nil
}

// drain reads the rest of a short body, so that the connection can be reused.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 256<<10)
	_ = body.Close()
}

const (
	// maxPages, stale and maxCursor bound a list: 10 million files are more than
	// anyone has. A page may be empty if its items have just ended.
	maxPages  = 10_000
	stale     = 100     // a page without older items counts as this many more
	maxCursor = 1 << 10 // bytes of the query of a page
)

// pages yields the items of a list, newest first, and fetches each page when it is needed.
// when returns a number that is higher for newer items. It ends after an error.
func pages[T any](
	ctx context.Context,
	c *Client,
	path string,
	items func(envelope) []T,
	when func(T) int64,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		oldest, query := int64(math.MaxInt64), url.Values{"limit": {"1000"}}
		for count := 0; query != nil; count++ {
			if count >= maxPages || len(query.Encode()) > maxCursor {
				yield(*new(T), fmt.Errorf("%w: its list does not end", ErrAnswer))
				return
			}
			before := oldest
			var e envelope
			var h http.Header
			err := c.call(ctx, request{
				method:   "GET",
				path:     path,
				query:    query,
				answered: &h,
			}, &e)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items(e) {
				if when(item) > oldest {
					yield(*new(T), fmt.Errorf("%w: its list repeats itself", ErrAnswer))
					return
				}
				oldest = when(item)
				if !yield(item, nil) {
					return
				}
			}
			if oldest == before {
				count += stale
			}
			query = next(h)
		}
	}
}

// next returns the query of the next page, or nil if there is none (RFC 8288).
func next(h http.Header) url.Values {
	for _, link := range h.Values("Link") {
		target, params, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if u, err := url.Parse(target); ok &&
			err == nil &&
			strings.Contains(params, `rel="next"`) {
			return u.Query()
		}
	}
	return nil
}

// idle is how long a connection may transfer nothing before it counts as lost.
const idle = time.Minute

// watched is a context that ends when its timer is not reset in time.
type watched struct {
	*time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func watch(ctx context.Context, most time.Duration) *watched {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watched{time.AfterFunc(most, func() { cancel(errIdle) }), ctx, cancel}
}

func (w *watched) end() {
	w.Stop()
	w.cancel(nil)
}
