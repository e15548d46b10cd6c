package sqs_test

import (
	"context"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"ferry/shared/boot/expect"
	"ferry/shared/notify/sqs"
)

type client struct {
	asked *awssqs.ChangeMessageVisibilityInput
}

func (c *client) ChangeMessageVisibility(
	_ context.Context,
	in *awssqs.ChangeMessageVisibilityInput,
	_ ...func(*awssqs.Options),
) (*awssqs.ChangeMessageVisibilityOutput, error) {
	c.asked = in
	return &awssqs.ChangeMessageVisibilityOutput{}, nil
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
		var c client
		expect.NoErr(t, sqs.Queue{Client: &c, URL: "u"}.Delay(t.Context(), "r", wait))
		if c.asked.VisibilityTimeout != want || *c.asked.ReceiptHandle != "r" || *c.asked.QueueUrl != "u" {
			t.Errorf("%s became %d s: %+v", wait, c.asked.VisibilityTimeout, c.asked)
		}
	}
}
