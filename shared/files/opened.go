package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// maxOpen is how many upload sessions of a user may be open.
const maxOpen = 100

// openedItem counts a user's open sessions. Expired ones count until the bound is reached; then
// the sessions themselves are counted again.
type openedItem struct {
	Open  int64 `json:"open"`
	Bytes int64 `json:"bytes"` // the stated lengths together
	Rev   int64 `json:"rev"`   // goes up with each change
}

func openedKey(by By) table.Key {
	if by.Request != "" { // one for all guests
		return table.Key{PK: "request#" + by.Request, SK: "uploads"}
	}
	return table.Key{PK: "user#" + by.User, SK: fmt.Sprintf("uploads-%d", by.UserIncarnation)}
}

// opened returns the operation that adds n, 1 or -1, to the uploader's open sessions.
func (s Session) opened(n int64) table.Op {
	return table.Update(openedKey(s.By)).
		Add("open", n).Add("bytes", n*s.stated()).Add("rev", 1)
}

// open stores a new session with the operations in ops, unless the uploader has too many, or
// their stated lengths together do not fit the disk. If a bound refuses the session, open counts
// the sessions again, and retries until it knows. A retry is refused only if another session
// began or ended meanwhile, and there are few of those.
func (s *Service) open(ctx context.Context, sess Session, ops []table.Op) error {
	free, err := int64(1<<62), error(nil) // no bound
	if s.Free != nil {
		free, err = s.Free()
	}
	if err != nil {
		return err
	}
	need, room := sess.stated(), free
	for {
		bound := sess.opened(1).
			Expire(sess.forgotten()).
			If(table.AtMost("open", maxOpen-1), table.AtMost("bytes", room-need))
		err = s.Table.Write(ctx, append(slices.Clip(ops), bound)...)
		if refused, ok := errors.AsType[*table.ConditionError](err); !ok ||
			refused.Op != len(ops) {
			return err
		}
		now, recount := s.countOpened(ctx, sess.By)
		switch {
		case recount != nil:
			return recount
		case now.open >= maxOpen:
			return &fault.Fault{
				Kind:  fault.TooMany,
				After: max(time.Second, now.first.Sub(s.Now())),
				Cause: err,
				Detail: fmt.Sprintf(
					"you have %d open uploads, the most that a user may have; complete or end one first", now.open,
				),
			}
		case now.bytes > free+now.arrived-need:
			// With a Cause the fault would be logged as an error, but the caller only asked for
			// too much.
			return fmt.Errorf("%w: %w", err, fault.New(fault.Full,
				"your open uploads and this one need more room than the service has left"))
		}
		room = free + now.arrived // what has arrived needs no more room
	}
}

// counted is the result of counting a user's sessions.
type counted struct {
	open, bytes, arrived int64     // arrived bytes are on the disk by now
	first                time.Time // when the first session expires
}

// countOpened counts a user's open sessions again, and corrects the item unless another
// session began or ended meanwhile.
func (s *Service) countOpened(ctx context.Context, by By) (n counted, err error) {
	key := openedKey(by)
	var was openedItem
	err = fault.Wrap(s.Table.Get(ctx, key, &was), "counting upload sessions", table.ErrNotFound)
	if err != nil {
		return n, err
	}
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: SessionsOf(by), Limit: PageSize}) {
		var sess Session
		if err == nil && item.Decode(&sess) != nil {
			continue // the list leaves it out too
		}
		var parts []blob.Part
		if err == nil &&
			(sess.By == by || by.Request != "") &&
			!table.Ended(s.Now(), sess.Expires, SessionLife) {
			if n.open++; n.open == 1 {
				n.first = time.Unix(sess.Expires, 0)
			}
			n.bytes += sess.stated()
			if s.Free != nil {
				parts, err = s.ArrivedParts(ctx, sess)
			}
		}
		if err != nil {
			return n, fmt.Errorf("counting upload sessions: %w", err)
		}
		for _, p := range parts {
			n.arrived += p.Size
		}
	}
	if n.open == was.Open && n.bytes == was.Bytes {
		return n, nil
	}
	err = s.Table.Write(ctx,
		table.Update(key).
			Set("open", n.open).
			Set("bytes", n.bytes).
			Add("rev", 1).
			If(table.AtMost("rev", was.Rev)))
	return n, fault.Wrap(err, "counting upload sessions", table.ErrCondition)
}
