package sns_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/smithy-go"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/notify/sns"
)

type batches func(*awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error)

func (c batches) PublishBatch(
	_ context.Context,
	in *awssns.PublishBatchInput,
	_ ...func(*awssns.Options),
) (*awssns.PublishBatchOutput, error) {
	return c(in)
}

func TestEachMessageHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	var asked *awssns.PublishBatchInput
	topics := sns.Topics{
		ARNs: map[notify.Topic]string{notify.NoticesTopic: "arn:notices"},
		Client: batches(func(in *awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error) {
			asked = in
			return &awssns.PublishBatchOutput{
				Successful: []types.PublishBatchResultEntry{{Id: aws.String("0")}},
				Failed: []types.BatchResultErrorEntry{{
					Id:   aws.String("2"),
					Code: aws.String("InternalError"),
				}, {Id: aws.String("9")}, {Id: aws.String("x")}},
			}, nil
		}),
	}
	errs := topics.Publish(t.Context(), notify.NoticesTopic, []notify.TopicMessage{{
		Body:      "a",
		Attribute: "channel",
		Value:     "mail",
	}, {Body: "b", Attribute: "channel", Value: "sms"}, {Body: "c", Attribute: "channel", Value: "mail"}})
	if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] == nil {
		t.Errorf("the outcomes are %v", errs)
	}
	if *asked.TopicArn != "arn:notices" || *asked.PublishBatchRequestEntries[1].Message != "b" ||
		*asked.PublishBatchRequestEntries[1].MessageAttributes["channel"].StringValue != "sms" {
		t.Errorf("the request was %+v", asked)
	}
}

// TestOnlyInvalidMessagesAreRefusedForGood publishes to a topic that refuses the word
// "bad".
func TestOnlyInvalidMessagesAreRefusedForGood(t *testing.T) {
	t.Parallel()
	text := aws.String("why")
	tests := []struct {
		name    string
		whole   error  // of each call that has the bad message
		code    string // of the bad message, if the call is taken
		sender  bool
		refused bool // the bad one
		others  bool // they are accepted
	}{
		{
			name:  "a message that is too long",
			whole: &types.BatchRequestTooLongException{Message: text}, refused: true, others: true,
		},
		{
			name:    "a parameter that is refused in the call",
			whole:   &types.InvalidParameterException{Message: aws.String("Invalid parameter: Message too long")},
			refused: true, others: true,
		},
		{
			name:  "a value that is refused in the call",
			whole: &types.InvalidParameterValueException{Message: text}, refused: true, others: true,
		},
		{
			name:  "a malformed topic",
			whole: &types.InvalidParameterException{Message: aws.String("Invalid parameter: TopicArn Reason: no")},
		},
		{name: "an outage", whole: &types.InternalErrorException{Message: text}},
		{name: "a lost connection", whole: errors.New("connection reset")},
		{name: "a parameter of one message", code: "InvalidParameter", sender: true, refused: true, others: true},
		{name: "a value of one message", code: "ParameterValueInvalid", sender: true, refused: true, others: true},
		{name: "an outage for one message", code: "InternalError", others: true},
		{name: "a limit for one message", code: "Throttled", sender: true, others: true},
	}
	for _, tt := range tests {
		taken, calls := map[string]int{}, 0
		topics := sns.Topics{Client: batches(func(in *awssns.PublishBatchInput) (*awssns.PublishBatchOutput, error) {
			calls++
			var out awssns.PublishBatchOutput
			for _, e := range in.PublishBatchRequestEntries {
				if *e.Message != "bad" {
					out.Successful = append(out.Successful, types.PublishBatchResultEntry{Id: e.Id})
				} else if tt.whole != nil {
					return nil, &smithy.OperationError{ServiceID: "SNS", OperationName: "PublishBatch", Err: tt.whole}
				} else {
					out.Failed = append(out.Failed, types.BatchResultErrorEntry{
						Id:          e.Id,
						Code:        aws.String(tt.code),
						Message:     text,
						SenderFault: tt.sender,
					})
				}
			}
			for _, e := range in.PublishBatchRequestEntries {
				taken[*e.Message]++
			}
			return &out, nil
		})}
		messages := make([]notify.TopicMessage, notify.MaxBatch)
		for i := range messages {
			messages[i] = notify.TopicMessage{Body: strconv.Itoa(i), Attribute: "type", Value: "x"}
		}
		messages[6].Body = "bad"
		errs := topics.Publish(t.Context(), notify.EventsTopic, messages)
		if len(errs) != len(messages) || calls > 10 {
			t.Fatalf("%s: %d outcomes of %d calls", tt.name, len(errs), calls)
		}
		for i, err := range errs {
			switch {
			case i == 6 &&
				(err == nil ||
					errors.Is(err, notify.ErrRefused) != tt.refused ||
					tt.whole != nil && !errors.Is(err, tt.whole)):
				t.Errorf("%s: the bad one: %v", tt.name, err)
			case i != 6 && (err == nil) != tt.others, i != 6 && errors.Is(err, notify.ErrRefused):
				t.Errorf("%s: message %d: %v", tt.name, i, err)
			case i != 6 && tt.others && taken[messages[i].Body] != 1:
				t.Errorf("%s: message %d was taken %d times", tt.name, i, taken[messages[i].Body])
			}
		}
	}
}

type texts struct {
	asked *awssns.PublishInput
	err   error
}

func (c *texts) Publish(
	_ context.Context,
	in *awssns.PublishInput,
	_ ...func(*awssns.Options),
) (*awssns.PublishOutput, error) {
	c.asked = in
	return &awssns.PublishOutput{MessageId: aws.String("from-sns")}, c.err
}

func TestTextMessageReachesSNSComplete(t *testing.T) {
	t.Parallel()
	var c texts
	id, err := sns.Sender{Client: &c, SenderID: "Ferry", Number: "+12065550100"}.Send(t.Context(), notify.TextMessage{
		ID:   "1",
		To:   "+393331234567",
		Text: "hi",
	})
	if err != nil || id != "from-sns" {
		t.Fatalf("sent as %q, %v", id, err)
	}
	a := c.asked.MessageAttributes
	if *c.asked.PhoneNumber != "+393331234567" || *c.asked.Message != "hi" || c.asked.TopicArn != nil ||
		*a["AWS.SNS.SMS.SenderID"].StringValue != "Ferry" ||
		*a["AWS.MM.SMS.OriginationNumber"].StringValue != "+12065550100" ||
		*a["AWS.SNS.SMS.SMSType"].StringValue != "Transactional" {
		t.Errorf("the request was %+v", c.asked)
	}
	if _, err := (sns.Sender{Client: &c}).Send(t.Context(), notify.TextMessage{
		ID:   "1",
		To:   "+393331234567",
		Text: "hi",
	}); err != nil ||
		len(c.asked.MessageAttributes) != 1 {
		t.Errorf("without a sender %+v, %v", c.asked, err)
	}
}

func TestOnlyARefusedNumberFailsForGood(t *testing.T) {
	t.Parallel()
	send := func(to string, err error) error {
		_, err = sns.Sender{Client: &texts{err: err}}.Send(t.Context(), notify.TextMessage{ID: "1", To: to, Text: "hi"})
		return err
	}
	expect.Err(t, "a malformed number", send("123", nil), notify.ErrTextRefused)
	expect.Err(
		t,
		"a number that SNS refuses",
		send("+393331234567", &types.InvalidParameterException{}),
		notify.ErrTextRefused,
	)
	if err := send("+393331234567", &types.ThrottledException{}); err == nil || errors.Is(err, notify.ErrTextRefused) {
		t.Errorf("too many requests: %v", err)
	}
}
