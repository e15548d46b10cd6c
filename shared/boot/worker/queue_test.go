package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"ferry/shared/boot/worker"
)

type sqsClient struct {
	asked *sqs.ChangeMessageVisibilityInput
}

func (c *sqsClient) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	c.asked = in
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func TestMessageIsHiddenForWholeSecondsWithinTheBounds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int32{
		-time.Second:            0,
		0:                       0,
		time.Millisecond:        1,
		1500 * time.Millisecond: 2,
		time.Hour:               3600,
		24 * time.Hour:          12*3600 - 900,
	} {
		var c sqsClient
		if err := (worker.Queue{Client: &c, URL: "u"}).Delay(t.Context(), "r", wait); err != nil {
			t.Fatal(err)
		}
		if c.asked.VisibilityTimeout != want || *c.asked.ReceiptHandle != "r" || *c.asked.QueueUrl != "u" {
			t.Errorf("%s became %d s: %+v", wait, c.asked.VisibilityTimeout, c.asked)
		}
	}
}
