package mail_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"ferry/shared/notify/mail"
)

// good is a complete message, but for what change has.
func good(change mail.Message) mail.Message {
	return mail.Message{
		ID:          cmp.Or(change.ID, "0001-a_b.c"),
		From:        cmp.Or(change.From, "Ferry <ferry@example.org>"),
		To:          cmp.Or(change.To, "ann@example.org"),
		ReplyTo:     cmp.Or(change.ReplyTo, "demo@example.org"),
		Unsubscribe: change.Unsubscribe,
	}
}

func TestEnvelopeChecksEachPart(t *testing.T) {
	t.Parallel()
	for _, change := range []mail.Message{
		{}, {To: "jörg@exämple.org"}, {Unsubscribe: "https://ferry.example.org/v1/notifications/stop?t=a_b-c"},
	} {
		if _, err := good(change).Envelope(); err != nil {
			t.Errorf("%+v: %v", change, err)
		}
	}
	for name, change := range map[string]mail.Message{
		"a recipient that is not an address":        {To: "ann"},
		"two recipients":                            {To: "a@example.org, b@example.org"},
		"a line break in the recipient":             {To: "ann@example.org\r\nBcc: b@example.org"},
		"a line break hidden in an encoded name":    {ReplyTo: "=?utf-8?q?a=0D=0ABcc:_x?= <a@example.org>"},
		"a line break in the ID":                    {ID: "a\r\nBcc: b@example.org"},
		"an ID with an at sign":                     {ID: "a@b"},
		"an endless ID":                             {ID: strings.Repeat("a", mail.MaxID+1)},
		"an unsubscribe address that is not a link": {Unsubscribe: "mailto:stop@ferry.invalid"},
		"one that ends its header":                  {Unsubscribe: "https://ferry.invalid/stop\r\nBcc:b"},
		"one that ends its brackets":                {Unsubscribe: "https://ferry.invalid/stop>,<https://other.invalid/"},
		"a sender address, which can be corrected":  {From: "ferry"},
	} {
		_, err := good(change).Envelope()
		if err == nil ||
			errors.Is(err, mail.ErrPermanent) != (change.From == "") ||
			strings.Contains(err.Error(), "example.org") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
