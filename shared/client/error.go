package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ferry/shared/retry"
	"ferry/shared/wire"
)

var (
	// ErrNoLogin is returned if a credential is needed but missing.
	ErrNoLogin = errors.New("not logged in")
	// ErrDigest is returned when bytes do not match their digest.
	ErrDigest = errors.New("the bytes received differ from those stored")
	// ErrChanged is returned when a file changes during a transfer: the local
	// one while it is sent, or the service's while it is fetched.
	ErrChanged = errors.New("the file changed during the transfer")
	// ErrExists is returned when a file with the name exists already.
	ErrExists = errors.New("the file already exists")
	// ErrNotFound is returned when the caller has no file with the name.
	ErrNotFound = errors.New("there is no such file")
	// ErrLost is returned for a file whose bytes the service has lost.
	ErrLost = errors.New("the service has lost the bytes of this file")
	// ErrUnknownUser is returned when a file is for a user who does not exist.
	ErrUnknownUser = errors.New("there is no such user")
	// ErrPassword is returned for a link whose password is missing or wrong.
	ErrPassword = errors.New("the link needs a password")
	// ErrAnswer is returned for an answer that does not follow the interface.
	ErrAnswer = errors.New("the answer is not from a Ferry service")
	// ErrUnnamed is returned when a file is stored and the answer does not say which of the user's files it is.
	ErrUnnamed = errors.New("the file is stored, but the answer does not say which of your files it is: look in the list (a proxy removes the header Ferry-Files, or the service is older than this program)")

	errIdle = errors.New("the connection has stalled")
)

// Error is what the service says when it refuses a request.
type Error struct {
	Status      int           // the HTTP status
	Description string        // the status in words
	Detail      string        // what exactly is wrong; may be empty
	Parameter   string        // the one that Detail is about, or several, separated by ", "; may be empty
	RetryAfter  time.Duration // how long to wait before the next try; 0 if not said

	password bool // the password of a link is missing or wrong
}

// Error returns one sentence, the most specific one known.
func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	text := fmt.Sprintf("the service answered %d %s", e.Status, e.Description)
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; try again in %s", e.RetryAfter)
	}
	return text
}

// Is makes a 404 and a link that never existed match ErrNotFound, a 500 about lost bytes ErrLost, a
// 400 about the parameter d ErrUnknownUser, and a 401 that asks for the password of a link
// ErrPassword.
func (e *Error) Is(target error) bool {
	return target == ErrPassword && e.password ||
		target == ErrNotFound && (e.Status == http.StatusNotFound || e.Detail == wire.NoLink) ||
		target == ErrLost &&
			e.Status == http.StatusInternalServerError &&
			strings.HasPrefix(e.Detail, wire.LostBytes) ||
		target == ErrUnknownUser && e.Status == http.StatusBadRequest && e.Parameter == "d"
}

// StatusOf returns the HTTP status of an error from the service, or 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

func hasStatus(err error, any ...int) bool { return slices.Contains(any, StatusOf(err)) }

// maxAnswer bounds an answer that is read into memory: the longest lists 10,000 parts.
const maxAnswer = 16 << 20

// refusal returns the error in a response. It reads the body.
func refusal(resp *http.Response) *Error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said envelope
	_ = json.Unmarshal(text, &said) // not every refusal has one
	return &Error{
		Status:      resp.StatusCode,
		Description: cmp.Or(said.Description, http.StatusText(resp.StatusCode)),
		Detail:      resp.Header.Get("Ferry-Error"),
		Parameter:   resp.Header.Get("Ferry-Parameter"),
		RetryAfter:  retryAfter(resp.Header),
		password:    resp.StatusCode == http.StatusUnauthorized && asksForPassword(resp.Header),
	}
}

// asksForPassword reports whether a refusal asks for the password of a link. Some gateways rename
// the field.
func asksForPassword(h http.Header) bool {
	fields := slices.Concat(
		h.Values("WWW-Authenticate"),
		h.Values("X-Amzn-Remapped-WWW-Authenticate"),
	)
	return slices.ContainsFunc(fields, func(field string) bool {
		return strings.Contains(field, `Basic realm="link"`)
	})
}

// retryAfter reads the field Retry-After in its two forms (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if s, err := strconv.ParseUint(value, 10, 24); err == nil {
		return time.Duration(s) * time.Second
	}
	at, err := http.ParseTime(value)
	sent, sentErr := http.ParseTime(h.Get("Date"))
	if err != nil || sentErr != nil {
		return 0
	}
	return max(0, at.Sub(sent))
}

// network is an error on the way to a host.
type network struct {
	host string
	err  error
}

func (n *network) Error() string { return n.host + " cannot be reached: " + reason(n.err) }
func (n *network) Unwrap() error { return n.err }

// reason describes an error without the call and the address that failed.
func reason(err error) string {
	var name *net.DNSError
	var number syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended early"
	case errors.As(err, &name):
		return name.Err
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}

// IsNetwork reports whether an error arose on the way to the service, so that a
// retry may succeed.
func IsNetwork(err error) bool {
	_, ok := errors.AsType[*network](err)
	return ok
}

// cause returns why a context ended, or err if it has not.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Retry says how often to try a request that can be repeated. Between tries it
// waits a random time: at first up to Min, then up to twice that and so on, up to
// Max; longer if the service says so. Zero fields mean 10 tries, half a second and
// half a minute.
type Retry struct {
	Tries    int // in all, except those that made progress; 1 never retries
	Min, Max time.Duration

	// Told is called with each failure before the wait for the next try; it may be
	// nil. It is called from several goroutines.
	Told func(err error, wait time.Duration)
}

// longestWait is the longest Retry-After that a retry waits for.
const longestWait = 2 * time.Minute

func (r Retry) withDefaults() Retry {
	r.Tries = max(1, cmp.Or(r.Tries, 10))
	r.Min, r.Max = cmp.Or(r.Min, 500*time.Millisecond), cmp.Or(r.Max, 30*time.Second)
	return r
}

// again marks any error as one that a retry may fix. After a try with progress
// the count of tries starts over.
type again struct {
	error
	progress bool
}

func (a again) Unwrap() error { return a.error }

// do calls f until it succeeds, fails for good, or has failed too often.
func (r Retry) do(ctx context.Context, f func() error) (err error) {
	for try := range (retry.Backoff{First: r.Min, Longest: r.Max, Tries: r.Tries}).Loop(ctx) {
		err = f()
		if err == nil {
			return nil
		}
		if a, ok := errors.AsType[again](err); ok && a.progress {
			try.Restart()
		}
		if try.Last || !temporary(err) || ctx.Err() != nil {
			break
		}
		if e, ok := errors.AsType[*Error](err); ok {
			try.Pause += e.RetryAfter
			if e.RetryAfter > longestWait {
				break
			}
		}
		if r.Told != nil {
			r.Told(err, try.Pause)
		}
	}
	return cause(ctx, err)
}

// temporary reports whether the same request may succeed later.
func temporary(err error) bool {
	if _, ok := errors.AsType[again](err); ok {
		return true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		running := e.Status == http.StatusConflict && e.RetryAfter > 0 // an earlier try still runs
		return running || hasStatus(e, 408, 429, 500, 502, 503, 504) && !errors.Is(e, ErrLost)
	}
	return IsNetwork(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrNoLogin)
}
