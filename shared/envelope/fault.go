package envelope

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// FaultKind says what is wrong. It is the HTTP status, but for Internal, which is a 500.
type FaultKind int

// The kinds of fault.
const (
	Internal         FaultKind = 0
	Invalid          FaultKind = http.StatusBadRequest                   // the request's parameters or body
	Unauthorized     FaultKind = http.StatusUnauthorized                 // no credential, or one that does not hold
	Forbidden        FaultKind = http.StatusForbidden                    // a credential that does not reach that far
	NotFound         FaultKind = http.StatusNotFound                     // no such resource
	MethodNotAllowed FaultKind = http.StatusMethodNotAllowed             // the resource has other methods
	Conflict         FaultKind = http.StatusConflict                     // the resource is not in the state for this
	TooLarge         FaultKind = http.StatusRequestEntityTooLarge        // the body, or what it would bring the user to
	Unsupported      FaultKind = http.StatusUnsupportedMediaType         // the body's media type
	Unsatisfiable    FaultKind = http.StatusRequestedRangeNotSatisfiable // the range of a download
	Precondition     FaultKind = http.StatusPreconditionFailed           // the file is another than the request expects
	TooMany          FaultKind = http.StatusTooManyRequests              // too many requests; After says when again
	Full             FaultKind = http.StatusInsufficientStorage          // the service has no room left
	Unavailable      FaultKind = http.StatusServiceUnavailable           // overload that passes; After says when again
)

// Fault is what went wrong with a request, in terms that a caller may be told.
// Every other error is internal: it is logged and leaves as a 500. Detail is
// one sentence for the caller: it must not hold anything the caller may not
// know.
type Fault struct {
	Kind   FaultKind
	Detail string
	After  time.Duration // TooMany and Unavailable: when to try again
	Allow  []string      // MethodNotAllowed: the methods there are
	Cause  error         // for the log alone
}

func (e *Fault) Error() string {
	if e.Cause != nil {
		return e.Detail + ": " + e.Cause.Error()
	}
	return e.Detail
}

func (e *Fault) Unwrap() error { return e.Cause }

// NewFault makes a fault with a detail for the caller.
func NewFault(kind FaultKind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// WaitFault makes a TooMany fault that ends after d.
func WaitFault(d time.Duration, format string, args ...any) *Fault {
	return &Fault{Kind: TooMany, Detail: fmt.Sprintf(format, args...), After: d}
}

// FaultOf returns the fault in err's chain, or nil if err is internal.
func FaultOf(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}

// Wrap says what was being done when err came up. It returns nil for nil, and for
// an error that is one of those expected.
func Wrap(err error, doing string, expected ...error) error {
	if err == nil || slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// IsFault reports whether err is a fault of this kind.
func IsFault(err error, kind FaultKind) bool {
	f := FaultOf(err)
	return f != nil && f.Kind == kind
}
