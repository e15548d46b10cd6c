package mail_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/notify/mail"
)

func TestEnvelopeChecksEachPart(t *testing.T) {
	t.Parallel()
	good := mail.Message{ID: "0001-a_b.c", From: "Ferry <ferry@example.org>", To: "ann@example.org", ReplyTo: "demo@example.org"}
	tests := []struct {
		name      string
		change    func(*mail.Message)
		ok        bool
		permanent bool
	}{
		{name: "a complete message is fine", change: func(*mail.Message) {}, ok: true},
		{name: "a reply address may be missing", change: func(m *mail.Message) { m.ReplyTo = "" }, ok: true},
		{name: "an address may be internationalised", change: func(m *mail.Message) { m.To = "jörg@exämple.org" }, ok: true},
		{name: "a recipient that is not an address is refused for good", change: func(m *mail.Message) { m.To = "ann" }, permanent: true},
		{name: "an empty recipient is refused for good", change: func(m *mail.Message) { m.To = "" }, permanent: true},
		{name: "two recipients are refused for good", change: func(m *mail.Message) { m.To = "a@example.org, b@example.org" }, permanent: true},
		{name: "a line break in the recipient is refused for good", change: func(m *mail.Message) { m.To = "ann@example.org\r\nBcc: b@example.org" }, permanent: true},
		{name: "a line break hidden in an encoded name is refused for good", change: func(m *mail.Message) { m.ReplyTo = "=?utf-8?q?a=0D=0ABcc:_x?= <a@example.org>" }, permanent: true},
		{name: "a line break in the ID is refused for good", change: func(m *mail.Message) { m.ID = "a\r\nBcc: b@example.org" }, permanent: true},
		{name: "an empty ID is refused for good", change: func(m *mail.Message) { m.ID = "" }, permanent: true},
		{name: "an ID with an at sign is refused for good", change: func(m *mail.Message) { m.ID = "a@b" }, permanent: true},
		{name: "an endless ID is refused for good", change: func(m *mail.Message) { m.ID = strings.Repeat("a", mail.MaxID+1) }, permanent: true},
		{name: "an unsubscribe address is fine", change: func(m *mail.Message) { m.Unsubscribe = "https://ferry.example.org/v1/notifications/stop?t=a_b-c" }, ok: true},
		{name: "one that is not a link is refused for good", change: func(m *mail.Message) { m.Unsubscribe = "mailto:stop@ferry.invalid" }, permanent: true},
		{name: "one that ends its header is refused for good", change: func(m *mail.Message) { m.Unsubscribe = "https://ferry.invalid/stop\r\nBcc:b" }, permanent: true},
		{name: "one that ends its brackets is refused for good", change: func(m *mail.Message) { m.Unsubscribe = "https://ferry.invalid/stop>,<https://other.invalid/" }, permanent: true},
		{name: "a bad sender address can be corrected", change: func(m *mail.Message) { m.From = "ferry" }},
	}
	for _, tt := range tests {
		m := good
		tt.change(&m)
		_, err := m.Envelope()
		if (err == nil) != tt.ok || errors.Is(err, mail.ErrPermanent) != tt.permanent {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "example.org") {
			t.Errorf("%s: the error quotes an address: %v", tt.name, err)
		}
	}
}
