package sns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"ferry/shared/relay"
	"ferry/shared/relay/sns"
)

type client func(*awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error)

func (c client) PublishBatch(_ context.Context, in *awssns.PublishBatchInput, _ ...func(*awssns.Options)) (*awssns.PublishBatchOutput, error) {
	return c(in)
}

func TestEachMessageHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	var asked *awssns.PublishBatchInput
	topics := sns.Topics{ARNs: map[relay.Topic]string{relay.Notices: "arn:notices"}, Client: client(func(in *awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error) {
		asked = in
		return &awssns.PublishBatchOutput{
			Successful: []types.PublishBatchResultEntry{{Id: aws.String("0")}},
			Failed:     []types.BatchResultErrorEntry{{Id: aws.String("2"), Code: aws.String("InternalError")}, {Id: aws.String("9")}, {Id: aws.String("x")}},
		}, nil
	})}
	errs := topics.Publish(t.Context(), relay.Notices, []relay.Message{{Body: "a", Attribute: "channel", Value: "mail"}, {Body: "b", Attribute: "channel", Value: "sms"}, {Body: "c", Attribute: "channel", Value: "mail"}})
	if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] == nil {
		t.Errorf("the outcomes are %v", errs)
	}
	if *asked.TopicArn != "arn:notices" || *asked.PublishBatchRequestEntries[1].Message != "b" ||
		*asked.PublishBatchRequestEntries[1].MessageAttributes["channel"].StringValue != "sms" {
		t.Errorf("asked was %+v", asked)
	}
}

func TestACallThatFailsFailsForAll(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	topics := sns.Topics{Client: client(func(*awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error) { return nil, down })}
	for _, err := range topics.Publish(t.Context(), relay.Events, make([]relay.Message, 2)) {
		if !errors.Is(err, down) {
			t.Errorf("the outcome is %v", err)
		}
	}
}
