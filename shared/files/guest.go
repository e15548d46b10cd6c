package files

import (
	"context"
	"errors"
	"time"

	"ferry/shared/fault"
	"ferry/shared/retry"
	"ferry/shared/table"
)

// Taking is what a guest stores.
type Taking struct {
	Begun *Session // a session that begins
	Files []File   // that become visible
	Of    string   // the id of the session that becomes one of the files
	Anew  bool     // the waiting notice takes no more files: the request's owner needs another
}

// Arrival is what a notice says about the files that have arrived by a request.
type Arrival struct {
	Request, Title string
	Files, Bytes   int64
	From           []string // the names that the guests gave; "" for a guest without one
}

// takeTime is how long a write is retried because other guests were faster. takeWait and longWait bound the
// pauses.
const takeTime, takeWait, longWait = 8 * time.Second, 10 * time.Millisecond, 320 * time.Millisecond

// bounded calls write with the operations that count what a guest stores against the request's
// limits. write returns how many other operations come before them in the transaction. For a user
// there are no such operations.
func (s *Service) bounded(
	ctx context.Context, owner string, by By, t Taking, write func(more []table.Op) (before int, err error),
) error {
	if by.Request == "" {
		_, err := write(nil)
		return err
	}
	backoff := retry.Backoff{First: takeWait, Longest: longWait, For: takeTime, Clock: s.Now}
	for range backoff.Loop(ctx) {
		more, err := s.Links.Admit(ctx, owner, by, t)
		if err != nil {
			return err
		}
		before, err := write(more)
		refused, ok := errors.AsType[*table.ConditionError](err)
		if !ok || refused.Op < before || refused.Op >= before+len(more) { // write may append operations of its own
			return err
		}
		t.Anew = refused.Op < before+len(more)-1 // the last operation is that of the request itself
	}
	return &fault.Fault{
		Kind:   fault.Unavailable,
		Detail: "many people are sending files through this link right now; try again",
		After:  time.Second,
	}
}
