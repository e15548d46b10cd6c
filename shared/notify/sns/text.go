package sns

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"ferry/shared/notify"
)

// TextAPI is what Sender uses of *sns.Client.
type TextAPI interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

// Sender sends through SNS. It is safe for concurrent use.
type Sender struct {
	Client TextAPI
	// SenderID is shown as the sender, where the recipient's country allows
	// it: 1 to 11 letters and digits. If it is empty, SNS chooses.
	SenderID string
}

// Send implements notify.TextSender: SNS knows the message by its own ID.
func (s Sender) Send(ctx context.Context, m notify.TextMessage) (string, error) {
	if err := m.Check(); err != nil {
		return "", fmt.Errorf("sending a text message: %w", err)
	}
	attributes := map[string]types.MessageAttributeValue{"AWS.SNS.SMS.SMSType": text("Transactional")}
	if s.SenderID != "" {
		attributes["AWS.SNS.SMS.SenderID"] = text(s.SenderID)
	}
	out, err := s.Client.Publish(ctx, &sns.PublishInput{PhoneNumber: &m.To, Message: &m.Text, MessageAttributes: attributes})
	if blames(err) { // a malformed number, or one whose owner wants no messages
		err = fmt.Errorf("%w: %w", notify.ErrTextRefused, err)
	}
	if err != nil {
		return "", fmt.Errorf("sending a text message: %w", err)
	}
	return aws.ToString(out.MessageId), nil
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// OpenText returns a sender of text messages from this name; if it is empty, SNS
// chooses one.
func OpenText(c aws.Config, from string) notify.TextSender {
	return Sender{Client: sns.NewFromConfig(c), SenderID: from}
}
