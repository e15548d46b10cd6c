package envelope

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// FaultKind is the HTTP status of a fault, except for Internal, which is a 500 without a
// detail.
type FaultKind int

// The kinds of fault.
const (
	Internal         FaultKind = 0
	Invalid          FaultKind = http.StatusBadRequest                   // bad parameters or a bad body
	Unauthorized     FaultKind = http.StatusUnauthorized                 // no credential, or an invalid one
	Forbidden        FaultKind = http.StatusForbidden                    // a credential that does not allow this
	NotFound         FaultKind = http.StatusNotFound                     // no such resource
	MethodNotAllowed FaultKind = http.StatusMethodNotAllowed             // the resource has other methods
	TooSlow          FaultKind = http.StatusRequestTimeout               // the body comes too slowly
	Conflict         FaultKind = http.StatusConflict                     // the resource's state does not allow this
	Gone             FaultKind = http.StatusGone                         // what the request made was removed since
	TooLarge         FaultKind = http.StatusRequestEntityTooLarge        // the body, or the user's quota with it
	Unsupported      FaultKind = http.StatusUnsupportedMediaType         // the body's media type
	Unsatisfiable    FaultKind = http.StatusRequestedRangeNotSatisfiable // the range of a download
	Precondition     FaultKind = http.StatusPreconditionFailed           // the file is not the one the request expects
	TooMany          FaultKind = http.StatusTooManyRequests              // too many requests; After says when to retry
	Full             FaultKind = http.StatusInsufficientStorage          // the service has no room left
	Lost             FaultKind = http.StatusInternalServerError          // a file's bytes are missing or damaged
	Unavailable      FaultKind = http.StatusServiceUnavailable           // a temporary overload; After says when to retry
)

// Fault is an error that the caller may see. All other errors are internal: they are
// logged, and the caller gets a 500. Detail is one sentence for the caller, who must be
// allowed to know everything in it.
type Fault struct {
	Kind   FaultKind
	Detail string
	After  time.Duration // when to retry, for TooMany and Unavailable
	Allow  []string      // the allowed methods, for MethodNotAllowed
	Cause  error         // only for the log
}

func (e *Fault) Error() string {
	if e.Cause != nil {
		return e.Detail + ": " + e.Cause.Error()
	}
	return e.Detail
}

func (e *Fault) Unwrap() error { return e.Cause }

// NewFault returns a fault with a detail for the caller.
func NewFault(kind FaultKind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// WaitFault returns a TooMany fault that tells the caller to wait for d. Its detail says
// so too, rounded up.
func WaitFault(d time.Duration, format string, args ...any) *Fault {
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

// FaultOf returns the fault in err's chain, or nil if there is none.
func FaultOf(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}

// Wrap says in err what was being done. It returns nil if err is nil or one of the
// expected errors.
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
