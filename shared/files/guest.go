package files

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Taking is what a guest stores.
type Taking struct {
	Begun *Session // a session that begins
	Files []File   // that become visible
	Of    string   // the id of the session that becomes one of them
	Anew  bool     // the notice that waits takes no more: its maker needs another
}

// Arrival is what a notice tells of the files that have come by a request.
type Arrival struct {
	Request, Title string
	Files, Bytes   int64
	From           []string // what the guests call themselves; empty is without a name
}

// takeTime is how long a write is tried again because other guests were faster. The pauses are
// random, first up to takeWait, then up to twice as much each time, at most longWait.
const takeTime, takeWait, longWait = 8 * time.Second, 10 * time.Millisecond, 320 * time.Millisecond

// bounded calls write with the operations that take what a guest stores. write returns how many
// others come before them in the transaction. For a user there are none.
func (s *Service) bounded(
	ctx context.Context, owner string, by By, t Taking, write func(more []table.Op) (before int, err error),
) error {
	if by.Request == "" {
		_, err := write(nil)
		return err
	}
	until := s.Now().Add(takeTime)
	for wait := takeWait; s.Now().Before(until) && ctx.Err() == nil; wait = min(2*wait, longWait) {
		more, err := s.Links.Admit(ctx, owner, by, t)
		if err != nil {
			return err
		}
		before, err := write(more)
		refused, ok := errors.AsType[*table.ConditionError](err)
		if !ok || refused.Op < before || refused.Op >= before+len(more) { // what write adds behind is its own
			return err
		}
		t.Anew = refused.Op < before+len(more)-1 // the last is that of the request itself
		time.Sleep(rand.N(wait))
	}
	return &fault.Fault{
		Kind: fault.Unavailable, Detail: "many people send files by this link at this moment; try again", After: time.Second,
	}
}
