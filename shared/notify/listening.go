package notify

import (
	"context"
	"errors"
	"fmt"

	"ferry/shared/table"
)

// On one machine the server knows whether there are webhooks, and notes it in
// the table for the commands that work beside it: what they do is an event too.
type listening struct {
	V int64 `json:"v"`
}

func listeningKey() table.Key { return table.Key{PK: "events", SK: "listening"} }

// Note notes whether somebody listens.
func NoteListening(ctx context.Context, t table.Table, on bool) error {
	op := table.Delete(listeningKey())
	if on {
		op = table.Put(listeningKey(), listening{layout})
	}
	if err := t.Write(ctx, op); err != nil {
		return fmt.Errorf("noting whether somebody listens to events: %w", err)
	}
	return nil
}

// Noted reports what Note has noted last.
func Listening(ctx context.Context, t table.Table) (on bool, err error) {
	var l listening
	err = t.Get(ctx, listeningKey(), &l)
	if errors.Is(err, table.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading whether somebody listens to events: %w", err)
	}
	return true, nil
}
