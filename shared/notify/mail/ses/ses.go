// Package ses sends e-mail through Amazon SES. Start reading at Sender.Send.
package ses

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/smithy-go"

	"ferry/shared/contact"
	"ferry/shared/notify/mail"
)

// API is what Sender uses of *sesv2.Client.
type API interface {
	SendEmail(context.Context, *sesv2.SendEmailInput, ...func(*sesv2.Options)) (*sesv2.SendEmailOutput, error)
}

// Sender sends through SES. It is safe for concurrent use.
type Sender struct {
	Client API
	// ConfigurationSet names the configuration set that reports whether mails arrive. It may be
	// empty.
	ConfigurationSet string
}

// Send implements mail.Sender. It returns SES's own ID for the message.
func (s Sender) Send(ctx context.Context, m mail.Message) (string, error) {
	env, err := m.Envelope()
	if err != nil {
		return "", fmt.Errorf("sending mail: %w", err)
	}
	if err := contact.CheckLocal(env.To.Address); err != nil {
		return "", fmt.Errorf("%w: %w", mail.ErrPermanent, err)
	}
	out, err := s.Client.SendEmail(ctx, s.input(m, env))
	if err != nil {
		return "", fmt.Errorf("sending mail: %w", classify(err))
	}
	return aws.ToString(out.MessageId), nil
}

func (s Sender) input(m mail.Message, env mail.Envelope) *sesv2.SendEmailInput {
	in := &sesv2.SendEmailInput{
		FromEmailAddress: new(env.From.String()),
		EmailTags:        []types.MessageTag{{Name: new(mail.Tag), Value: new(m.ID)}},
		Destination:      &types.Destination{ToAddresses: []string{address(env.To)}},
		Content: &types.EmailContent{Simple: &types.Message{
			Subject: content(m.SubjectLine()),
			Body:    &types.Body{Text: content(m.Text)},
			Headers: headers(m),
		}},
	}
	if m.HTML != "" {
		in.Content.Simple.Body.Html = content(m.HTML)
	}
	if env.ReplyTo != nil && contact.CheckLocal(env.ReplyTo.Address) == nil {
		in.ReplyToAddresses = []string{env.ReplyTo.String()}
	}
	if s.ConfigurationSet != "" {
		in.ConfigurationSetName = new(s.ConfigurationSet)
	}
	return in
}

// address returns the bare address, quoted where necessary.
func address(a *netmail.Address) string {
	return strings.Trim((&netmail.Address{Address: a.Address}).String(), "<>")
}

func headers(m mail.Message) []types.MessageHeader {
	header := func(name, value string) types.MessageHeader {
		return types.MessageHeader{Name: new(name), Value: new(value)}
	}
	all := []types.MessageHeader{header("Auto-Submitted", "auto-generated")} // RFC 3834: no vacation replies, please
	if m.Unsubscribe != "" {
		all = append(
			all,
			header("List-Unsubscribe", "<"+m.Unsubscribe+">"),
			header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
		)
	}
	return all
}

func content(text string) *types.Content {
	return &types.Content{Data: new(text), Charset: new("UTF-8")}
}

// classify marks what SES will always refuse: a request that it cannot read, such as one with a
// malformed address, or content that it rejects. A sender's address that is not verified is a
// mistake in the settings, which can be corrected. It also marks refusals by the account's
// limits, by code, as some have no type of their own.
func classify(err error) error {
	limits := []string{
		"LimitExceededException", "Throttling", "ThrottlingException", "TooManyRequestsException",
	}
	if failed, ok := errors.AsType[smithy.APIError](err); ok &&
		slices.Contains(limits, failed.ErrorCode()) {
		if strings.Contains(failed.ErrorMessage(), "quota") {
			return fmt.Errorf("%w: %w", mail.ErrQuota, err)
		}
		return fmt.Errorf("%w: %w", mail.ErrRate, err)
	}
	var refused *types.MessageRejected
	var bad *types.BadRequestException
	unverified := strings.Contains(err.Error(), "not verified")
	if (errors.As(err, &refused) || errors.As(err, &bad)) && !unverified {
		return fmt.Errorf("%w: %w", mail.ErrPermanent, err)
	}
	return err
}

// Open returns the sender of a configuration set.
func Open(c aws.Config, set string) mail.Sender {
	return Sender{Client: sesv2.NewFromConfig(c), ConfigurationSet: set}
}
