package notify

import (
	"context"
	"io"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Outbox writes notices into the outbox, and events beside them. It implements the
// Outbox of users, of files and of links. It is safe for concurrent use.
type Outbox struct {
	Table     table.Table
	Now       func() time.Time
	Random    io.Reader
	Limits    Limits
	Source    string // the service's address, which events show, or empty
	Listening bool   // whether events are recorded: only if somebody listens
}

// Message implements files.Outbox.
func (o Outbox) Message(
	ctx context.Context,
	m files.Message,
	f files.File,
	link files.Options,
) (table.Op, error) {
	return o.about(ctx, f, Notice{
		Kind:    Link,
		Channel: m.Channel,
		To:      m.To,
		Lang:    m.Lang,
		Base:    m.Base,
		Expires: f.Expires,
		Sender:  m.Sender,
		ReplyTo: m.ReplyTo,
		Message: m.Text,
		Terms:   termsOf(link),
	})
}

// Receipt implements links.Outbox. A receipt is about the past, so it does not expire.
func (o Outbox) Receipt(
	ctx context.Context,
	to files.Contact,
	f files.File,
	link string,
) (table.Op, error) {
	return o.about(ctx, f, Notice{
		Kind:      Receipt,
		Channel:   files.Mail,
		To:        to.To,
		Lang:      to.Lang,
		Base:      to.Base,
		Recipient: link,
	})
}

// Arrived implements links.Outbox.
func (o Outbox) Arrived(to files.Contact, a files.Arrival, due time.Time) (table.Op, error) {
	unique, err := keys.RandomID(o.Random, 8)
	notice := Notice{
		Kind:      Arrived,
		Channel:   files.Mail,
		To:        to.To,
		Lang:      to.Lang,
		Base:      to.Base,
		NotBefore: due.UnixMilli(),
		Name:      a.Title,
		Files:     a.Files,
		Length:    a.Bytes,
		By:        a.Request,
		From:      a.From,
	}
	return notice.Op(o.Now(), unique), err
}

// ArrivedToo implements links.Outbox.
func (o Outbox) ArrivedToo(notice string, a files.Arrival) table.Op {
	n := Notice{ID: notice}
	return table.Update(n.Key()).
		Add("files", a.Files).
		Add("length", a.Bytes).
		Set("from", a.From).
		If(n.untouched()...)
}

// about queues a notice about a file.
func (o Outbox) about(ctx context.Context, f files.File, n Notice) (table.Op, error) {
	unique, err := keys.RandomID(o.Random, 8)
	n.LogID = fault.LogID(ctx)
	n.Owner = f.Owner
	n.Area = f.Area
	n.File = f.ID
	n.Name = f.Name
	n.Length = f.Length
	if len(f.First) > 0 {
		n.Files, n.First = f.Files(), f.First
	}
	return n.Op(o.Now(), unique), err
}

// PIN implements users.Outbox.
func (o Outbox) PIN(
	ctx context.Context,
	u users.User,
	nonce, base, lang string,
	expires time.Time,
) table.Op {
	return o.toUser(ctx, u, nonce, Notice{
		Kind:    PIN,
		Lang:    lang,
		Base:    base,
		Expires: expires.Unix(),
	})
}

// Invite implements users.Outbox.
func (o Outbox) Invite(
	ctx context.Context,
	u users.User,
	nonce, base string,
	expires time.Time,
) table.Op {
	return o.toUser(ctx, u, nonce, Notice{
		Kind:    Invite,
		Lang:    u.Lang,
		Base:    base,
		Expires: expires.Unix(),
	})
}

// toUser queues a mail about a user's password.
func (o Outbox) toUser(ctx context.Context, u users.User, nonce string, n Notice) table.Op {
	n.Channel = files.Mail
	n.To = u.Email
	n.User = u.Name
	n.Nonce = nonce
	n.LogID = fault.LogID(ctx)
	return n.Op(o.Now(), nonce[:16])
}
