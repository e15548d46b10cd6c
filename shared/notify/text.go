package notify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// ErrTextRefused matches (errors.Is) a failure that sending again will not change,
// such as an impossible number. Any other failure may be temporary.
var ErrTextRefused = errors.New("sms: refused for good")

// TextMessage is one text message.
type TextMessage struct {
	ID   string // as in mail.Message: the same ID is the same message
	To   string // E.164: + and up to 15 digits
	Text string
}

// TextSender is the port to a service that sends text messages to mobile phones. It is safe for
// concurrent use.
type TextSender interface {
	// Send hands the message over for delivery and returns the provider's name
	// for it. A message may be delivered although Send reported a failure. An
	// error's text may quote what a provider said, and with it parts of the
	// message.
	Send(ctx context.Context, m TextMessage) (provider string, err error)
}

// Check returns an ErrTextRefused for a message that no provider would take.
func (m TextMessage) Check() error {
	if m.ID == "" || m.Text == "" || !regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`).MatchString(m.To) {
		return fmt.Errorf("%w: a text message needs an ID, a text, and a number of the form +391234567890", ErrTextRefused)
	}
	return nil
}
