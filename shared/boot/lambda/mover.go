package lambda

import (
	"context"
	"net/http"
	"net/url"

	"ferry/shared/api"
	"ferry/shared/fault"
)

// SweepEvent is an event of the function sweep. The zero value, like the event of a
// schedule, asks for a sweep.
type SweepEvent struct {
	Move   *Moved `json:"move,omitempty"`   // asks for the bytes of one file to be moved instead
	Again  int    `json:"again,omitempty"`  // how often it has gone on, as one run was too short
	Failed int    `json:"failed,omitempty"` // objects that failed in the runs before
}

// Moved is a file whose record was moved to the other area.
type Moved struct {
	Owner string `json:"owner"`
	ID    int64  `json:"id"`
}

// Invoke has an event handled by a function, and does not wait for that. Lambda keeps the
// event, tries three times, and then sends it to the function's destination for failures.
type Invoke func(ctx context.Context, function string, event SweepEvent) error

// NewInvoke returns an Invoke, which makes one call, or two if the first one fails: Lambda
// may have closed the connection while this function was frozen.
func NewInvoke(c *Cloud) Invoke {
	s := newService(c, "lambda", "", "")
	header := http.Header{"X-Amz-Invocation-Type": {"Event"}}
	return func(ctx context.Context, function string, event SweepEvent) error {
		// The SDK too escapes the colons of an ARN, which count in the signature.
		path := "2015-03-31/functions/" + url.QueryEscape(function) + "/invocations"
		_, passing, err := s.ask(ctx, path, header, event)
		if err != nil && passing > 0 {
			_, _, err = s.ask(ctx, path, header, event)
		}
		return fault.Wrap(err, "invoking "+function)
	}
}

// Mover has the bytes of files moved by the function that FERRY_MOVER names.
func Mover(c *Cloud, p *api.Ports) error {
	function, err := c.Name("FERRY_MOVER")
	invoke := NewInvoke(c)
	p.Mover = func(ctx context.Context, owner string, id int64) error {
		return invoke(ctx, function, SweepEvent{Move: &Moved{owner, id}})
	}
	return err
}
