package files

import (
	"context"
	"errors"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Requests bounds what guests store: who uploads by a request's link has no account.
type Requests interface {
	// Admit returns the operations that take what a guest stores from what the request allows.
	// They belong at the end of the same transaction, and are refused if anything else of the
	// request has changed meanwhile. If it allows no more, the fault is Forbidden or TooLarge, or
	// TooMany if it will later. It makes at most two calls to the table.
	Admit(ctx context.Context, owner string, by By, t Taking) ([]table.Op, error)
	// RemoveRequests removes all requests of a user.
	RemoveRequests(ctx context.Context, owner string) error
}

// Taking is what a guest stores.
type Taking struct {
	Begun *Session // a session that begins
	Files []File   // that become visible
	Of    string   // the id of the session that becomes one of them
}

// takeTries bounds how often a write is tried again because other guests were faster.
const takeTries = 10

// bounded calls write with the operations that take what a guest stores. write returns how many
// others come before them in the transaction. For a user there are none.
func (s *Service) bounded(
	ctx context.Context, owner string, by By, t Taking, write func(more []table.Op) (before int, err error),
) error {
	if by.Request == "" {
		_, err := write(nil)
		return err
	}
	for range takeTries {
		more, err := s.Requests.Admit(ctx, owner, by, t)
		if err != nil {
			return err
		}
		before, err := write(more)
		if refused, ok := errors.AsType[*table.ConditionError](err); !ok || refused.Op < before {
			return err
		}
	}
	return fault.New(fault.Unavailable, "many people send files by this link at this moment; try again")
}
