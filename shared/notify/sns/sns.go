// Package sns publishes to topics of Amazon SNS, and sends text messages through it.
// Start reading at Topics.Publish and Sender.Send.
package sns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"ferry/shared/notify"
)

// TopicsAPI is what Topics uses of *sns.Client.
type TopicsAPI interface {
	PublishBatch(context.Context, *sns.PublishBatchInput, ...func(*sns.Options)) (*sns.PublishBatchOutput, error)
}

// Topics publishes to the topics with these ARNs.
type Topics struct {
	Client TopicsAPI
	ARNs   map[notify.Topic]string
}

// Publish implements notify.Topics in one call. If the whole call is refused, it
// looks for the messages that are to blame.
func (t Topics) Publish(
	ctx context.Context,
	to notify.Topic,
	messages []notify.TopicMessage,
) []error {
	errs := make([]error, len(messages))
	in := &sns.PublishBatchInput{TopicArn: new(t.ARNs[to])}
	for i, m := range messages {
		errs[i] = errors.New("publishing: the answer does not mention the message")
		in.PublishBatchRequestEntries = append(
			in.PublishBatchRequestEntries,
			types.PublishBatchRequestEntry{
				Id:                new(strconv.Itoa(i)),
				Message:           new(m.Body),
				MessageAttributes: map[string]types.MessageAttributeValue{m.Attribute: text(m.Value)},
			},
		)
	}
	out, err := t.Client.PublishBatch(ctx, in)
	if half := len(messages) / 2; half > 0 && blames(err) {
		return append(t.Publish(
			ctx,
			to,
			messages[:half],
		), t.Publish(ctx, to, messages[half:])...)
	}
	if blames(err) {
		err = fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	if err != nil {
		for i := range errs {
			errs[i] = fmt.Errorf("publishing %d messages: %w", len(messages), err)
		}
		return errs
	}
	for _, e := range out.Successful {
		note(errs, e.Id, nil)
	}
	for _, e := range out.Failed {
		note(errs, e.Id, failure(e))
	}
	return errs
}

// blames reports whether a call was refused because of a message in it. An error about the
// topic's name means a wrong setting. Everything else, such as a missing permission, a limit or
// an outage, may be temporary.
func blames(err error) bool {
	if parameter, ok := errors.AsType[*types.InvalidParameterException](err); ok {
		return !strings.Contains(parameter.ErrorMessage(), "TopicArn")
	}
	_, long := errors.AsType[*types.BatchRequestTooLongException](err)
	_, value := errors.AsType[*types.InvalidParameterValueException](err)
	return long || value
}

// failure returns why one message of a call was refused.
func failure(e types.BatchResultErrorEntry) error {
	err := fmt.Errorf("publishing: %s: %s", aws.ToString(e.Code), aws.ToString(e.Message))
	final := []string{"InvalidParameter", "ParameterValueInvalid"} // the codes of two of the exceptions above
	if e.SenderFault && slices.Contains(final, aws.ToString(e.Code)) {
		return fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	return err
}

// note stores the outcome of the message with an ID.
func note(errs []error, id *string, err error) {
	if i, bad := strconv.Atoi(aws.ToString(id)); bad == nil && i >= 0 && i < len(errs) {
		errs[i] = err
	}
}

// OpenTopics returns the topics with these ARNs.
func OpenTopics(c aws.Config, arns map[notify.Topic]string) notify.Topics {
	return Topics{Client: sns.NewFromConfig(c), ARNs: arns}
}

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
	// Number is a number or short code of the account that messages come from, or
	// empty. Some countries, such as the United States, need one.
	Number string
}

// Send implements notify.TextSender. It returns SNS's own ID for the message.
func (s Sender) Send(ctx context.Context, m notify.TextMessage) (string, error) {
	if err := m.Check(); err != nil {
		return "", fmt.Errorf("sending a text message: %w", err)
	}
	attributes := map[string]types.MessageAttributeValue{"AWS.SNS.SMS.SMSType": text("Transactional")}
	if s.SenderID != "" {
		attributes["AWS.SNS.SMS.SenderID"] = text(s.SenderID)
	}
	if s.Number != "" {
		attributes["AWS.MM.SMS.OriginationNumber"] = text(s.Number)
	}
	out, err := s.Client.Publish(ctx, &sns.PublishInput{
		PhoneNumber:       &m.To,
		Message:           &m.Text,
		MessageAttributes: attributes,
	})
	if blames(err) { // a malformed number, or one whose owner wants no messages
		err = fmt.Errorf("%w: %w", notify.ErrTextRefused, err)
	}
	if err != nil {
		return "", fmt.Errorf("sending a text message: %w", err)
	}
	return aws.ToString(out.MessageId), nil
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: new("String"), StringValue: &s}
}

// OpenText returns a sender of text messages from this name and number; if one is empty,
// SNS chooses.
func OpenText(c aws.Config, name, number string) notify.TextSender {
	return Sender{Client: sns.NewFromConfig(c), SenderID: name, Number: number}
}
