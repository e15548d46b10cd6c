package ses_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/smithy-go"

	"ferry/shared/boot/expect"
	"ferry/shared/contact"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/mail/ses"
)

type client struct {
	asked *sesv2.SendEmailInput
	err   error
}

func (c *client) SendEmail(
	_ context.Context,
	in *sesv2.SendEmailInput,
	_ ...func(*sesv2.Options),
) (*sesv2.SendEmailOutput, error) {
	c.asked = in
	return &sesv2.SendEmailOutput{MessageId: aws.String("from-ses")}, c.err
}

func message() mail.Message {
	return mail.Message{
		ID: "1-a", From: "Ferry <ferry@example.org>", To: "Ann <ann@example.com>", ReplyTo: "Zoë <zoe@example.org>",
		Subject: "a file\r\nBcc: eve@example.org =?utf-8?q?=0D?=", Text: "text", HTML: "<p>text</p>",
		Unsubscribe: "https://files.example.com/v1/stop?t=x",
	}
}

func TestMailReachesSESComplete(t *testing.T) {
	t.Parallel()
	var c client
	id, err := ses.Sender{Client: &c, ConfigurationSet: "set"}.Send(t.Context(), message())
	if err != nil || id != "from-ses" {
		t.Fatalf("sent as %q, %v", id, err)
	}
	in, m := c.asked, c.asked.Content.Simple
	for what, pair := range map[string][2]string{
		"the sender":            {*in.FromEmailAddress, `"Ferry" <ferry@example.org>`},
		"the recipient":         {in.Destination.ToAddresses[0], "ann@example.com"},
		"the reply address":     {in.ReplyToAddresses[0], "=?utf-8?q?Zo=C3=AB?= <zoe@example.org>"},
		"the configuration set": {*in.ConfigurationSetName, "set"},
		"the tag":               {*in.EmailTags[0].Name + *in.EmailTags[0].Value, "notice1-a"},
		"the subject":           {*m.Subject.Data, "a file Bcc: eve@example.org = ?utf-8?q?=0D?="},
		"the text":              {*m.Body.Text.Data, "text"},
		"the HTML":              {*m.Body.Html.Data, "<p>text</p>"},
		"the first header":      {*m.Headers[0].Name + ": " + *m.Headers[0].Value, "Auto-Submitted: auto-generated"},
		"the second":            {*m.Headers[1].Name + ": " + *m.Headers[1].Value, "List-Unsubscribe: <https://files.example.com/v1/stop?t=x>"},
		"the third":             {*m.Headers[2].Name + ": " + *m.Headers[2].Value, "List-Unsubscribe-Post: List-Unsubscribe=One-Click"},
	} {
		expect.Equal(t, what, pair[0], pair[1])
	}
}

func TestOptionalFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	var c client
	_, err := ses.Sender{Client: &c}.Send(t.Context(), mail.Message{
		ID:   "1",
		From: "a@example.org",
		To:   "b@example.org",
	})
	expect.NoErr(t, err)
	in := c.asked
	if in.ReplyToAddresses != nil ||
		in.ConfigurationSetName != nil ||
		in.Content.Simple.Body.Html != nil ||
		len(in.Content.Simple.Headers) != 1 {
		t.Errorf("the request was %+v", in)
	}
}

func TestAnErrorSaysWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	const quota = "Daily message quota exceeded."
	unverified := "Email address is not verified. The following identities failed the check in region EU-SOUTH-1: a@example.org"
	for _, tt := range []struct{ err, want error }{
		{&types.MessageRejected{Message: aws.String(quota)}, mail.ErrPermanent},
		{&types.BadRequestException{Message: aws.String("Missing final '@domain'")}, mail.ErrPermanent},
		{&types.MessageRejected{Message: &unverified}, nil},
		{&types.SendingPausedException{Message: aws.String("quota")}, nil},
		{errors.New("no route"), nil},
		{&types.TooManyRequestsException{}, mail.ErrRate},
		{&types.LimitExceededException{Message: aws.String(quota)}, mail.ErrQuota},
		{&smithy.GenericAPIError{Code: "ThrottlingException", Message: "Maximum sending rate exceeded."}, mail.ErrRate},
		{&smithy.GenericAPIError{Code: "Throttling", Message: quota}, mail.ErrQuota},
	} {
		_, err := ses.Sender{Client: &client{err: tt.err}}.Send(t.Context(), message())
		for _, kind := range []error{mail.ErrPermanent, mail.ErrRate, mail.ErrQuota} {
			if !errors.Is(err, tt.err) || errors.Is(err, kind) != (kind == tt.want) {
				t.Errorf("%v becomes %v, want %v", tt.err, err, tt.want)
			}
		}
	}
	_, err := ses.Sender{Client: &client{}}.Send(t.Context(), mail.Message{ID: "1", From: "a@example.org", To: "none"})
	expect.Err(t, "a malformed address", err, mail.ErrPermanent)
}

func TestSESGetsAddressesInASCII(t *testing.T) {
	t.Parallel()
	const local, domain = "jörg@example.com", "ann@bücher.example"
	var c client
	s := ses.Sender{Client: &c}
	m := mail.Message{ID: "1", From: "a@example.org", To: local}
	if _, err := s.Send(t.Context(), m); !errors.Is(err, mail.ErrPermanent) ||
		!errors.Is(err, contact.ErrLocal) ||
		c.asked != nil {
		t.Errorf("a local part of other letters: %v", err)
	}
	m.To = domain
	for reply, want := range map[string]string{domain: "<ann@xn--bcher-kva.example>", local: ""} {
		m.ReplyTo = reply
		_, err := s.Send(t.Context(), m)
		if err != nil ||
			c.asked.Destination.ToAddresses[0] != "ann@xn--bcher-kva.example" ||
			strings.Join(c.asked.ReplyToAddresses, "") != want {
			t.Errorf("the request was %+v, %v", c.asked, err)
		}
	}
}
