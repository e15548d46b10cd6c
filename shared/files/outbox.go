package files

import (
	"context"
	"errors"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Outbox queues messages to users and events for programs about files. Its operations
// belong in the same transaction as the change that they report, except for a download's
// event. It is safe for concurrent use.
type Outbox interface {
	// Reserve counts a message from who stores files to each address and number, which
	// must all differ, and returns the time under which it counted them. A TooMany
	// fault says when to try again; an Invalid fault means that it will never
	// work. After a fault nothing is counted. It makes one call to the table,
	// or none if there are no limits.
	Reserve(ctx context.Context, by By, to []string) (at time.Time, err error)
	// ReserveAgain counts again what was reserved at that time, if another hour
	// or day has begun since, and writes mark in the same call. If the condition
	// of mark is refused, the error is table.ErrCondition.
	ReserveAgain(ctx context.Context, reserved time.Time, mark func(at time.Time) table.Op, by By, to []string) (at time.Time, err error)
	// Release gives back what was reserved at these times.
	Release(ctx context.Context, reserved []time.Time, by By, to []string) error
	// Message queues a notice about a file. The sort key of the operation is the
	// notice's ID.
	Message(ctx context.Context, m Message, f File) (table.Op, error)
	// Event reports an event to programs that listen, if there are any.
	Event(ctx context.Context, e Event) ([]table.Op, error)
}

// The channels of notices.
const (
	Mail = "mail"
	SMS  = "sms"
)

// Message is what a notice tells one recipient: the link to a file, or that a
// file was downloaded.
type Message struct {
	Channel string `json:"channel"`
	To      string `json:"to"` // an e-mail address or an E.164 number
	Lang    string `json:"lang"`
	Base    string `json:"base"`              // the service's address, for the link
	Sender  string `json:"sender,omitempty"`  // the user who uploaded
	ReplyTo string `json:"replyTo,omitempty"` // that user's address, if known
	Text    string `json:"message,omitempty"` // from the sender
	// Receipt makes it a receipt to the uploader. Recipient then says whose link
	// was used; it is empty for the file's own.
	Receipt   bool   `json:"-"`
	Recipient string `json:"-"`
}

// Event is what has happened to a file.
type Event struct {
	What   What
	File   File
	Reason Reason // of Deleted
	Link   string // of Downloaded: ID of the notice with the link; empty for the file's own
}

// What is a kind of event.
type What int

// The kinds of events.
const (
	Uploaded What = iota
	Downloaded
	Deleted
	Restored
)

// Reason is why a file was deleted.
type Reason string

// The reasons. The first two move the file to the backup area, from which it
// can be restored.
const (
	ByUser      Reason = "user"      // its owner deleted it
	ByRetention Reason = "retention" // its time in the user area is over
	ByPurge     Reason = "purge"     // it was removed for good
)

// Receipt says where to mail a receipt for a file's first download. While it is
// due it is an item beside the record, and the transaction of the first download
// removes it. So it is sent once, even if several links are used or the file was
// moved meanwhile.
type Receipt struct {
	To   string `json:"to,omitempty"` // an e-mail address; empty if no receipt is wanted
	Lang string `json:"lang,omitempty"`
	Base string `json:"base,omitempty"` // the service's address
}

type receiptItem struct {
	V int64 `json:"v"`
	Receipt
}

func receiptKey(f File) table.Key { return table.Key{PK: "receipt#" + f.Owner, SK: sortKey(f.ID)} }

// due returns the operation that stores the receipt of a file as due.
func (r Receipt) due(f File) []table.Op {
	if r.To == "" {
		return nil
	}
	return []table.Op{table.Put(receiptKey(f), receiptItem{formatVersion, r})}
}

// cancelReceipt returns the operation that removes the file's receipt, if it is
// still due.
func (f File) cancelReceipt() []table.Op {
	if !f.Notify {
		return nil
	}
	return []table.Op{table.Delete(receiptKey(f))}
}

// countFirst writes the counting operation and queues the receipt. It does
// nothing if the receipt is no longer due, or the link no longer exists.
func (s *Service) countFirst(ctx context.Context, l Link, counting table.Op) (queued bool, err error) {
	var due receiptItem
	err = s.Table.Get(ctx, receiptKey(l.File), &due)
	if errors.Is(err, table.ErrUnreadable) {
		s.unreadable(ctx, receiptKey(l.File), err)
	}
	if err != nil {
		return false, fault.Wrap(err, "reading whether a receipt is due", table.ErrNotFound, table.ErrUnreadable)
	}
	notice, err := s.Outbox.Message(ctx, Message{
		Channel: Mail, To: due.To, Lang: due.Lang, Base: due.Base, Receipt: true, Recipient: l.To,
	}, l.File)
	if err != nil {
		return false, err
	}
	err = s.Table.Write(ctx, counting, table.Delete(receiptKey(l.File)).If(table.Exists()), notice)
	return err == nil, fault.Wrap(err, "counting the first download", table.ErrCondition)
}
