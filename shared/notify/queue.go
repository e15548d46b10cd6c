package notify

import (
	"context"
	"time"
)

// MaxDelay is the longest that a queue hides a message.
const MaxDelay = 12 * time.Hour

// Queue is the port to the queue that a sender's messages come from.
type Queue interface {
	// Delay hides a message that was received, named by its receipt, for
	// some time: at most MaxDelay from when it was received.
	Delay(ctx context.Context, receipt string, wait time.Duration) error
}
