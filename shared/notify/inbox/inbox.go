// Package inbox stands in for mail and phone providers where there are none: it
// keeps messages in the table instead of sending them, and shows them. Start reading
// at keep, then page.go.
//
// Its messages contain PINs and download links, which the rest of the table does
// not. It is for trying Ferry out and for tests, not for other people's files.
package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// Keep is how long a message stays.
const Keep = 7 * 24 * time.Hour

// MaxList is the maximum number of messages in one List.
const MaxList = 100

const partition = "inbox"

// Message is a message that was sent.
type Message struct {
	ID      string    `json:"id"`
	Channel string    `json:"channel"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	HTML    string    `json:"html"`
	Sent    time.Time `json:"sent"`
}

// stored is a Message in the table. Its sort key is the notice's ID without the prefix
// of codes, so it sorts by time, and a message that is sent again has the same key.
type stored struct {
	V       int64         `json:"v"`
	Channel files.Channel `json:"channel"`
	To      string        `json:"to"`
	Subject string        `json:"subject,omitempty"`
	Text    string        `json:"text,omitempty"`
	HTML    string        `json:"html,omitempty"`
	Sent    int64         `json:"sent"` // Unix milliseconds
}

// Inbox keeps messages. It is safe for concurrent use.
type Inbox struct {
	table table.Table
	now   func() time.Time
}

// New returns the Inbox of a table.
func New(t table.Table, now func() time.Time) *Inbox { return &Inbox{t, now} }

// Couriers returns the Inbox in place of the providers of all channels.
func (in *Inbox) Couriers() map[files.Channel]notify.Courier {
	return map[files.Channel]notify.Courier{
		files.Mail: notify.ByMail(in.Mail()),
		files.SMS:  notify.ByText(in.SMS()),
	}
}

// Mail returns the Inbox as a sender of e-mail.
func (in *Inbox) Mail() mail.Sender { return mailSender{in} }

// SMS returns the Inbox as a sender of text messages.
func (in *Inbox) SMS() notify.TextSender { return smsSender{in} }

type mailSender struct{ in *Inbox }

func (s mailSender) Send(ctx context.Context, m mail.Message) (string, error) {
	if _, err := m.Envelope(); err != nil {
		return "", fmt.Errorf("keeping a mail: %w", err)
	}
	return m.ID, s.in.keep(ctx, m.ID, stored{
		Channel: files.Mail,
		To:      m.To,
		Subject: m.Subject,
		Text:    m.Text,
		HTML:    m.HTML,
	})
}

type smsSender struct{ in *Inbox }

func (s smsSender) Send(ctx context.Context, m notify.TextMessage) (string, error) {
	if err := m.Check(); err != nil {
		return "", fmt.Errorf("keeping a text message: %w", err)
	}
	return m.ID, s.in.keep(ctx, m.ID, stored{Channel: files.SMS, To: m.To, Text: m.Text})
}

func (in *Inbox) keep(ctx context.Context, id string, s stored) error {
	now := in.now()
	s.V, s.Sent = table.Format, now.UnixMilli()
	key := table.Key{PK: partition, SK: strings.TrimPrefix(id, notify.CodePrefix)}
	err := in.table.Write(ctx, table.Put(key, s).If(table.NotExists()).Expire(now.Add(Keep)))
	return fault.Wrap(err, "keeping a message in the inbox", table.ErrCondition) // it may be here already
}

// List returns up to limit (1 to MaxList) messages, newest first. It makes one
// call to the table.
func (in *Inbox) List(ctx context.Context, limit int) ([]Message, error) {
	limit = max(1, min(limit, MaxList))
	page, err := in.table.Query(ctx, table.Query{PK: partition, Descending: true, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("reading the inbox: %w", err)
	}
	messages := make([]Message, 0, len(page.Items))
	for _, item := range page.Items {
		var s stored
		if err := item.Decode(&s); err != nil {
			return nil, fmt.Errorf("reading a message of the inbox: %w", err)
		}
		sent := time.UnixMilli(s.Sent).UTC()
		if in.now().Sub(sent) >= Keep {
			continue
		}
		messages = append(messages, Message{
			item.Key.SK, string(s.Channel), s.To, s.Subject, s.Text, s.HTML, sent,
		})
	}
	return messages, nil
}
