package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/lazy"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

var (
	// ErrObsolete matches (errors.Is) a delivery that was skipped because the
	// notice has expired or its file is gone.
	ErrObsolete = errors.New("the notice is obsolete")
	// ErrPermanent matches a delivery that will always fail.
	ErrPermanent = errors.New("the notice cannot be delivered")
)

// Config is what a Sender needs.
type Config struct {
	Table table.Table
	Key   keys.LinkKey
	// Couriers hand messages over. Notices of a channel without one fail for good.
	Couriers map[files.Channel]Courier
	// Links reports which links have ended. If it is nil, links are not checked.
	Links Links
	// Webhooks are where recorded events go. Without any, events stay in the table.
	Webhooks []*Receiver
	Service  string // its name in mails; if empty, Ferry
	From     string // the sender of mails: an address, with or without a display name
	Base     string // the service's address, for notices that have none; may be empty
	Now      func() time.Time
	Log      *slog.Logger
	// Jitter returns a number from 0 to 1 (exclusive) that spreads retries. If it is nil, the
	// number is random. It must be safe for concurrent use.
	Jitter func() float64
	Limits Limits // for the mails about what did not arrive
	// OnEnd adds to the transaction that ends a notice as Sent or Failed.
	OnEnd []OnEnd
}

// Links is the port to the links that notices contain.
type Links interface {
	// ItemKey returns the key of a link's item.
	ItemKey(token string) table.Key
	// Over reports whether an item belongs to a link that no longer works.
	Over(item table.Item) bool
}

// Sender delivers notices and events. It is safe for concurrent use. Any number
// of Senders may work on one table, in any number of processes.
type Sender struct {
	Config
	lanes   []*lane
	hooks   []*hook
	backlog int64
	// quotaFrees is when mails stop waiting for the provider's used-up quota, in Unix
	// milliseconds.
	quotaFrees atomic.Int64
}

// NewSender returns a Sender, or an error if it can send mail but From is not an
// address.
func NewSender(c Config) (*Sender, error) {
	if c.Couriers[files.Mail] != nil && !mail.Valid(c.From) {
		return nil, fmt.Errorf(
			"%q is not an address to send mail from; it must look like Ferry <ferry@example.org>", c.From,
		)
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	c.Service = cmp.Or(c.Service, "Ferry")
	s := &Sender{Config: c, backlog: backlog}
	codes, others := table.Query{
		After:      afterCodes,
		Descending: true,
	}, table.Query{After: afterCodes}
	s.lanes = []*lane{s.newLane(codes, s.readNotice, partitions(OutboxPrefix)...)}
	for _, channel := range files.Channels() {
		s.lanes = append(
			s.lanes,
			s.newLane(others, s.noticeReader(channel), partitions(OutboxPrefix)...),
		)
	}
	for _, r := range c.Webhooks {
		h := &hook{Sender: s, Receiver: r, queue: "webhook#" + r.ID}
		h.lane = s.newLane(table.Query{}, h.read, h.queue)
		h.lane.byDue = true
		s.hooks, s.lanes = append(s.hooks, h), append(s.lanes, h.lane)
	}
	return s, nil
}

// deliver writes the message of the notice, hands it to its channel's provider, and keeps the
// provider's ID for it. It does not touch the outbox. An error that matches neither ErrObsolete
// nor ErrPermanent may be temporary. Its text holds no link, PIN or whole address.
func (e *noticeEntry) deliver(ctx context.Context) error {
	n := e.n
	err := e.current(ctx, &n)
	if err == nil && n.Kind == Missing {
		err = e.prepareMissing(ctx, &n)
	}
	if err != nil {
		return err
	}
	send := e.Couriers[n.Channel]
	if send == nil {
		return fmt.Errorf("%w: no provider is configured for the channel %q",
			ErrPermanent, n.Channel)
	}
	e.n.Provider, err = send(ctx, e.Sender, n)
	e.limit = mail.Limit(err)
	if errors.Is(err, mail.ErrPermanent) || errors.Is(err, ErrTextRefused) {
		err = fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return e.scrub(n, err)
}

// current returns ErrObsolete if the notice's link or PIN no longer works, and
// ErrPermanent if its recipient must get no such mail.
func (s *Sender) current(ctx context.Context, n *Notice) error {
	if n.expired(s.Now()) {
		return fmt.Errorf("%w: it has expired", ErrObsolete)
	}
	var keys []table.Key
	if n.Kind == Link {
		keys = append(keys, files.Key(n.Area, n.Owner, n.File))
	}
	asks := n.Kind == Link && s.Links != nil
	if asks { // the key's version is not known yet; unless it is the newest, the item is not found
		keys = append(keys, s.Links.ItemKey(s.Key.Recipient(n.Area, n.Owner, n.File, n.ID)))
	}
	if n.Channel == files.Mail {
		keys = append(keys, SuppressedKey(n.To))
	}
	items, err := s.Table.GetMany(ctx, keys...)
	if err != nil {
		return fmt.Errorf("looking for the file and the recipient of a notice: %w", err)
	}
	if n.Kind == Link {
		n.key, err = s.checkFile(items[0])
	}
	if err == nil && asks && s.Links.Over(items[1]) {
		err = fmt.Errorf("%w: the link has ended", ErrObsolete)
	}
	if err == nil && n.Channel == files.Mail {
		err = n.checkAddress(items[len(items)-1])
	}
	return err
}

// checkFile returns the version of the key of the file's links, or ErrObsolete if the file
// is gone.
func (s *Sender) checkFile(item table.Item) (key int64, err error) {
	var f files.File
	switch err := item.Decode(&f); {
	case errors.Is(err, table.ErrNotFound):
		return 0, fmt.Errorf("%w: the file was removed", ErrObsolete)
	case err != nil:
		return 0, fmt.Errorf("reading the file of a notice: %w", err)
	case f.Expired(s.Now()):
		return 0, fmt.Errorf("%w: the file has expired", ErrObsolete)
	case s.Key.Revoked(f.Key):
		return 0, errors.New("the link's key was revoked, and the file has no new link yet")
	}
	return f.Key, nil
}

// checkAddress returns ErrPermanent if the address is suppressed. Its owner's opt-out does not
// stop mails about passwords: without them nobody could change one.
func (n Notice) checkAddress(item table.Item) error {
	e, err := readSuppressed(item)
	if err != nil {
		return err
	}
	for _, cause := range e.Causes() {
		if !n.isPassword() || cause.Reason != AddressStopped {
			return fmt.Errorf("%w: the address takes no mail from here: %s",
				ErrPermanent, cause.Reason.sentence())
		}
	}
	return nil
}

// Courier writes the message of a notice, hands it to the provider of a channel, and returns the
// provider's ID for it. An error that matches neither ErrPermanent, mail.ErrPermanent nor
// ErrTextRefused may be temporary; its text may quote parts of the message.
type Courier func(ctx context.Context, s *Sender, n Notice) (provider string, err error)

// ByMail returns the Courier that writes letters.
func ByMail(provider mail.Sender) Courier {
	return func(ctx context.Context, s *Sender, n Notice) (string, error) {
		m, err := s.mail(n)
		if err != nil {
			return "", err
		}
		return provider.Send(ctx, m)
	}
}

// mail writes the mail of a notice.
func (s *Sender) mail(n Notice) (mail.Message, error) {
	n.Base = cmp.Or(n.Base, s.Base)
	l, err := s.letter(n)
	if err != nil {
		return mail.Message{}, err
	}
	m := mail.Message{
		ID:          n.ID,
		From:        s.From,
		To:          n.To,
		Subject:     l.Subject,
		Text:        l.text(),
		HTML:        l.html(),
		Unsubscribe: l.Unsubscribe,
	}
	if n.Kind == Missing { // if more has failed to arrive, it is a different message
		m.ID = fmt.Sprintf("%s-%d", n.ID, len(n.missing))
	}
	if mail.Valid(n.ReplyTo) {
		m.ReplyTo = n.ReplyTo
	}
	return m, nil
}

// ByText returns the Courier that writes short texts.
func ByText(provider TextSender) Courier {
	return func(ctx context.Context, s *Sender, n Notice) (string, error) {
		if n.Kind != Link {
			return "", fmt.Errorf("%w: no text message for the kind %q", ErrPermanent, n.Kind)
		}
		return provider.Send(ctx, TextMessage{
			ID:   n.ID,
			To:   n.To,
			Text: linkText(n, n.link(s.Key)),
		})
	}
}

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
	// Send hands the message over for delivery and returns the provider's ID for it. The message
	// may be delivered even if Send reports a failure. An error's text may quote the provider's
	// answer, and with it parts of the message.
	Send(ctx context.Context, m TextMessage) (provider string, err error)
}

// Check returns an ErrTextRefused for a message that no provider would take.
func (m TextMessage) Check() error {
	if m.ID == "" || m.Text == "" || !e164().MatchString(m.To) {
		return fmt.Errorf(
			"%w: a text message needs an ID, a text, and a number of the form +391234567890", ErrTextRefused,
		)
	}
	return nil
}

var e164 = lazy.Regexp(`^\+[1-9][0-9]{1,14}$`)
