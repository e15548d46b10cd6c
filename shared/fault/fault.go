// Package fault has the errors that a caller may see, and what is known about the caller. The
// domains return faults, and the envelope answers with them. Start reading with Fault.
package fault

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// Kind is the HTTP status of a fault, except for Internal, which is a 500 without a
// detail.
type Kind int

// The kinds of fault.
const (
	Internal         Kind = 0
	Invalid          Kind = http.StatusBadRequest                   // bad parameters or a bad body
	Unauthorized     Kind = http.StatusUnauthorized                 // no credential, or an invalid one
	Forbidden        Kind = http.StatusForbidden                    // a credential that does not allow this
	NotFound         Kind = http.StatusNotFound                     // no such resource
	MethodNotAllowed Kind = http.StatusMethodNotAllowed             // the resource has other methods
	TooSlow          Kind = http.StatusRequestTimeout               // the body comes too slowly
	Conflict         Kind = http.StatusConflict                     // the resource's state does not allow this
	Gone             Kind = http.StatusGone                         // what the request made has since been removed
	TooLarge         Kind = http.StatusRequestEntityTooLarge        // the body, or the user's quota with it
	Unsupported      Kind = http.StatusUnsupportedMediaType         // the body's media type
	Unsatisfiable    Kind = http.StatusRequestedRangeNotSatisfiable // the range of a download
	Precondition     Kind = http.StatusPreconditionFailed           // the file is not the one the request expects
	TooMany          Kind = http.StatusTooManyRequests              // too many requests; After says when to retry
	Full             Kind = http.StatusInsufficientStorage          // the service has no room left
	Lost             Kind = http.StatusInternalServerError          // a file's bytes are missing or damaged
	Unavailable      Kind = http.StatusServiceUnavailable           // a temporary overload; After says when to retry
)

// Fault is an error that the caller may see. All other errors are internal: they are
// logged, and the caller gets a 500. Detail is one sentence for the caller, who must be
// allowed to know everything in it.
type Fault struct {
	Kind      Kind
	Detail    string
	Parameter string        // the one that is wrong, or several separated by ", ", for Invalid
	After     time.Duration // when to retry, for TooMany and Unavailable
	Allow     []string      // the allowed methods, for MethodNotAllowed; the allowed codings, for Unsupported
	Cause     error         // only for the log
}

func (e *Fault) Error() string {
	if e.Cause != nil {
		return e.Detail + ": " + e.Cause.Error()
	}
	return e.Detail
}

func (e *Fault) Unwrap() error { return e.Cause }

// New returns a fault with a detail for the caller.
func New(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Parameter returns an Invalid fault about the parameter of this name.
func Parameter(name, format string, args ...any) *Fault {
	return &Fault{Kind: Invalid, Detail: fmt.Sprintf(format, args...), Parameter: name}
}

// Wait returns a TooMany fault that tells the caller to wait for d. Its detail says
// so too, rounded up.
func Wait(d time.Duration, format string, args ...any) *Fault {
	n, unit := math.Ceil(d.Seconds()), "second"
	switch {
	case n >= 2*60*60:
		n, unit = math.Ceil(d.Hours()), "hour"
	case n >= 2*60:
		n, unit = math.Ceil(d.Minutes()), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	detail := fmt.Sprintf(format, args...) + fmt.Sprintf("; try again in %.0f %s", n, unit)
	return &Fault{Kind: TooMany, Detail: detail, After: d}
}

// Of returns the fault in err's chain, or nil if there is none.
func Of(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}

// Wrap adds to err what was being done. It returns nil if err is nil or one of the expected
// errors.
func Wrap(err error, doing string, expected ...error) error {
	if err == nil ||
		slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Is reports whether err is a fault of this kind.
func Is(err error, kind Kind) bool {
	f := Of(err)
	return f != nil && f.Kind == kind
}
