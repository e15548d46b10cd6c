package lambda

import (
	"context"
	"net/http"
	"net/url"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/service"
)

// SweepEvent is an event of the function sweep. The zero value, like a schedule's
// event, asks for a sweep.
type SweepEvent struct {
	Move   *Moved `json:"move,omitempty"`   // move the bytes of this file instead
	Again  int    `json:"again,omitempty"`  // how many runs came before, each too short
	Failed int    `json:"failed,omitempty"` // objects that failed in those runs
}

// Moved is a file whose record was moved to the other area.
type Moved struct {
	Owner string `json:"owner"`
	ID    int64  `json:"id"`
}

// Invoke hands a function an event, and does not wait for the result. Lambda keeps the
// event, tries three times, and then sends it to the function's on-failure destination.
type Invoke func(ctx context.Context, function string, event SweepEvent) error

// NewInvoke returns an Invoke that retries a temporary failure once: Lambda may have closed
// the connection while this function was frozen.
func NewInvoke(c *Cloud) Invoke {
	s := newRemote(c, "lambda", "", "")
	header := http.Header{"X-Amz-Invocation-Type": {"Event"}}
	return func(ctx context.Context, function string, event SweepEvent) error {
		// Like the SDK, escape the colons of an ARN: they are part of what is signed.
		path := "2015-03-31/functions/" + url.QueryEscape(function) + "/invocations"
		_, passing, err := s.ask(ctx, path, header, event)
		if err != nil && passing > 0 {
			_, _, err = s.ask(ctx, path, header, event)
		}
		return fault.Wrap(err, "invoking "+function)
	}
}

// Mover lets the function that FERRY_MOVER names move the bytes of files.
func Mover(c *Cloud, p *service.Ports) {
	function, invoke := c.Name("FERRY_MOVER"), NewInvoke(c)
	p.Mover = func(ctx context.Context, _ *files.Service, owner string, id int64) error {
		return invoke(ctx, function, SweepEvent{Move: &Moved{owner, id}})
	}
}
