// Package overdue finds the notices whose message to the senders was lost.
package overdue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ferry/shared/notices"
	"ferry/shared/relay"
	"ferry/shared/table"
)

// Age is for how long a notice must have been due. A sender that works would
// have dealt with it.
const Age = time.Hour

// Remind points the senders again at notices that are overdue, and returns at
// how many. It stops at the first error.
func Remind(ctx context.Context, t table.Table, topics relay.Topics, now time.Time) (count int, err error) {
	var keys []table.Key
	for key, err := range notices.Overdue(ctx, t, now, Age) {
		if err != nil {
			return 0, fmt.Errorf("looking for overdue notices: %w", err)
		}
		keys = append(keys, key)
	}
	for some := range slices.Chunk(keys, relay.MaxBatch) {
		messages, err := pointers(ctx, t, some)
		if err != nil {
			return count, err
		}
		if err := publish(ctx, topics, messages); err != nil {
			return count, err
		}
		count += len(messages)
	}
	return count, nil
}

// pointers leaves out what was settled in the meantime.
func pointers(ctx context.Context, t table.Table, keys []table.Key) (messages []relay.Message, err error) {
	items, err := t.GetMany(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading overdue notices: %w", err)
	}
	for _, item := range items {
		var n struct {
			Channel string `json:"channel"`
		}
		if item.Found() {
			_ = item.Decode(&n) // what cannot be read is for a sender to give up
			messages = append(messages, relay.Pointer(item.Key, n.Channel))
		}
	}
	return messages, nil
}

func publish(ctx context.Context, topics relay.Topics, messages []relay.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := errors.Join(topics.Publish(ctx, relay.Notices, messages)...); err != nil {
		return fmt.Errorf("pointing at overdue notices: %w", err)
	}
	return nil
}
