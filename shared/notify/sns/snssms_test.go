package sns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"ferry/shared/notify"
	ferrysns "ferry/shared/notify/sns"
)

type texts struct {
	asked *sns.PublishInput
	err   error
}

func (c *texts) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	c.asked = in
	return &sns.PublishOutput{MessageId: aws.String("from-sns")}, c.err
}

func TestTextMessageReachesSNSComplete(t *testing.T) {
	t.Parallel()
	var c texts
	id, err := ferrysns.Sender{Client: &c, SenderID: "Ferry", Number: "+12065550100"}.Send(t.Context(), notify.TextMessage{ID: "1", To: "+393331234567", Text: "hi"})
	if err != nil || id != "from-sns" {
		t.Fatalf("sent as %q, %v", id, err)
	}
	a := c.asked.MessageAttributes
	if *c.asked.PhoneNumber != "+393331234567" || *c.asked.Message != "hi" || c.asked.TopicArn != nil ||
		*a["AWS.SNS.SMS.SenderID"].StringValue != "Ferry" || *a["AWS.MM.SMS.OriginationNumber"].StringValue != "+12065550100" || *a["AWS.SNS.SMS.SMSType"].StringValue != "Transactional" {
		t.Errorf("the request was %+v", c.asked)
	}
	if _, err := (ferrysns.Sender{Client: &c}).Send(t.Context(), notify.TextMessage{ID: "1", To: "+393331234567", Text: "hi"}); err != nil || len(c.asked.MessageAttributes) != 1 {
		t.Errorf("without a sender %+v, %v", c.asked, err)
	}
}

func TestOnlyARefusedNumberFailsForGood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		to        string
		err       error
		permanent bool
	}{
		{"a malformed number", "123", nil, true},
		{"a number that SNS refuses", "+393331234567", &types.InvalidParameterException{}, true},
		{"too many requests", "+393331234567", &types.ThrottledException{}, false},
		{"a missing permission", "+393331234567", &types.AuthorizationErrorException{}, false},
		{"no network", "+393331234567", errors.New("no route"), false},
	} {
		_, err := ferrysns.Sender{Client: &texts{err: tt.err}}.Send(t.Context(), notify.TextMessage{ID: "1", To: tt.to, Text: "hi"})
		if err == nil || errors.Is(err, notify.ErrTextRefused) != tt.permanent {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
