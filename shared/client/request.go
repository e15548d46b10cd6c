package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// request is one call of the interface, which can be sent several times.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	json         any    // body, or
	form         string // body, or
	body         []byte // body of Content-Type in header
	login        bool   // needs a bearer
	basic        *basic // credential of its own
}

type basic struct{ user, password string }

// envelope is the standard answer of the interface.
type envelope struct {
	User    string `json:"user"`
	Bearer  string `json:"bearer"`
	LinkURL string `json:"linkURL"`
	Files   []File `json:"files"`
}

// call sends a request that can be repeated and reads the answer into into,
// which may be nil.
func (c *Client) call(ctx context.Context, r request, into any) error {
	return c.retry.do(ctx, func() error { return c.once(ctx, r, into) })
}

// once sends a request, with a new bearer if that it has is refused.
func (c *Client) once(ctx context.Context, r request, into any) error {
	_, err := c.onceHeader(ctx, r, into)
	return err
}

// onceHeader is once that also returns the answer's header.
func (c *Client) onceHeader(ctx context.Context, r request, into any) (http.Header, error) {
	bearer, header, err := c.try(ctx, r, "", into)
	if r.login && isRefused(err) {
		_, header, err = c.try(ctx, r, bearer, into)
	}
	return header, err
}

// try sends a request and returns the bearer that it had.
func (c *Client) try(ctx context.Context, r request, refused string, into any) (bearer string, header http.Header, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*c.idle, errIdle)
	defer cancel()
	req, err := c.build(ctx, r)
	if err != nil {
		return "", nil, err
	}
	if r.login {
		if bearer, err = c.authorize(ctx, req.Header, refused); err != nil {
			return "", nil, err
		}
	}
	resp, err := c.send(req)
	if err != nil {
		return bearer, nil, err
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return bearer, resp.Header, refusal(resp)
	}
	return bearer, resp.Header, decode(resp, into)
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	body, kind := r.body, ""
	switch {
	case r.json != nil:
		text, err := json.Marshal(r.json)
		if err != nil {
			return nil, fmt.Errorf("writing a request: %w", err)
		}
		body, kind = text, "application/json"
	case r.form != "":
		body, kind = []byte(r.form), "application/x-www-form-urlencoded"
	}
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if r.basic != nil {
		req.SetBasicAuth(r.basic.user, r.basic.password)
	}
	return req, nil
}

// send sends a request. Its errors name no query, which may hold a token.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", c.agent)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "*/*")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		if cause := context.Cause(req.Context()); cause != nil {
			err = cause
		}
		return nil, &network{req.URL.Host, err}
	}
	return resp, nil
}

func decode(resp *http.Response, into any) error {
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &network{resp.Request.URL.Host, err}
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || json.Unmarshal(text, into) != nil {
		return ErrAnswer
	}
	return nil
}

// drain reads what is left of a body, if it is little, so that its connection
// can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 256<<10)
	_ = body.Close()
}

var (
	errIdle  = errors.New("nothing moves on the connection")
	errLocal = errors.New("on this machine") // kind of errors that no repetition mends
)

// network is an error on the way to a host.
type network struct {
	host string
	err  error
}

func (n *network) Error() string { return n.host + " cannot be reached: " + reason(n.err) }
func (n *network) Unwrap() error { return n.err }

// reason leaves out which calls failed at which addresses.
func reason(err error) string {
	var name *net.DNSError
	var number syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended too early"
	case errors.As(err, &name):
		return name.Err
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}

func isNetwork(err error) bool {
	var n *network
	return errors.As(err, &n)
}

// IsNetwork tells whether an error arose on the way to the service, so that a
// later try may succeed.
func IsNetwork(err error) bool { return isNetwork(err) }

// local is an error of reading or writing here.
type local struct{ err error }

func (l *local) Error() string        { return l.err.Error() }
func (l *local) Unwrap() error        { return l.err }
func (l *local) Is(target error) bool { return target == errLocal }
