// Package sqs hides messages in a queue of Amazon SQS until they are due. Start
// reading at Queue.Delay.
package sqs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"ferry/shared/fault"
	"ferry/shared/notify"
)

// API is what Queue uses of *sqs.Client.
type API interface {
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// margin is left for the time that has passed since the message was received.
const margin = 15 * time.Minute

// Queue is the queue at a URL.
type Queue struct {
	Client API
	URL    string
}

// Delay implements notify.Queue.
func (q Queue) Delay(ctx context.Context, receipt string, wait time.Duration) error {
	wait = min(max(wait, 0), notify.MaxDelay-margin)
	seconds := int32((wait + time.Second - 1) / time.Second)
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl:          new(q.URL),
		ReceiptHandle:     new(receipt),
		VisibilityTimeout: seconds,
	})
	return fault.Wrap(err, "delaying a message")
}

// Open returns the queue at a URL.
func Open(c aws.Config, url string) notify.Queue {
	return Queue{Client: sqs.NewFromConfig(c), URL: url}
}
