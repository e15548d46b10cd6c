package files

import (
	"context"
	"slices"
	"time"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

// Outbox is who is told of what happens to files. Its operations belong into
// the transaction that they tell of. It is safe for concurrent use.
type Outbox interface {
	// Reserve counts a message of the user to each address and number, which
	// differ, and returns the time that it counts them at. A TooMany fault
	// tells when there is room again, an Invalid one that there never will be;
	// then none was counted. One call to the table; none if nothing is bounded.
	Reserve(ctx context.Context, user string, to []string) (at time.Time, err error)
	// ReserveAgain counts what was reserved at that time once more if it is
	// sent in another hour or day, and writes mark in the same call. A refused
	// condition of mark is a table.ErrCondition.
	ReserveAgain(ctx context.Context, reserved time.Time, mark func(at time.Time) table.Op, user string, to []string) (at time.Time, err error)
	// Release gives back what was reserved at these times.
	Release(ctx context.Context, reserved []time.Time, user string, to []string) error
	// Message sends a message about a file. The operation's sort key is the
	// message's ID.
	Message(ctx context.Context, m Message, f File) (table.Op, error)
	// Event tells programs of an event, if any listen.
	Event(ctx context.Context, e Event) ([]table.Op, error)
}

// The channels of messages.
const (
	Mail = "mail"
	SMS  = "sms"
)

// Message is a message to one recipient: the link to a file, or a receipt.
type Message struct {
	Channel string `json:"channel"`
	To      string `json:"to"` // an e-mail address or an E.164 number
	Lang    string `json:"lang"`
	Base    string `json:"base"`              // the service's address, for the link
	Sender  string `json:"sender,omitempty"`  // the user who uploaded
	ReplyTo string `json:"replyTo,omitempty"` // that user's address, if known
	Text    string `json:"message,omitempty"` // the sender's
	// Receipt tells the uploader that the file was downloaded; Recipient is
	// whose link was used, empty for the file's own.
	Receipt   bool   `json:"-"`
	Recipient string `json:"-"`

	unsent
}

// unsent are fields of a message that was sent. A session stores its messages
// with them, empty.
type unsent struct {
	V         int64  `json:"v"`
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Created   int64  `json:"created"`
	Expires   int64  `json:"expires"`
	Tries     int64  `json:"tries"`
	NotBefore int64  `json:"notBefore"`
}

// Event is what has happened to a file.
type Event struct {
	What   What
	File   File
	Reason Reason // of Deleted
	Link   string // of Downloaded: the message that brought the link; empty for the file's own
}

// What has happened.
type What int

// What can happen.
const (
	Uploaded What = iota
	Downloaded
	Deleted
	Restored
)

// Reason is why a file was deleted.
type Reason string

// The reasons. A file that was moved to the backup area can be restored, until
// it is purged.
const (
	ByUser      Reason = "user"      // its owner has deleted it
	ByRetention Reason = "retention" // its time in the user area is over
	ByPurge     Reason = "purge"     // it is gone for good
)

// Receipt says where an uploader wants to hear of the first download of a
// file. It is stored as an item of its own, beside the record, which the
// transaction of the first download removes: so that is only one, by whichever
// of the file's links it comes, and wherever the file was moved in between.
type Receipt struct {
	To   string `json:"to,omitempty"` // an e-mail address; empty if nobody wants to hear
	Lang string `json:"lang,omitempty"`
	Base string `json:"base,omitempty"` // the service's address
}

type receiptItem struct {
	V int64 `json:"v"`
	Receipt
}

func receiptKey(f File) table.Key { return table.Key{PK: "receipt#" + f.Owner, SK: sortKey(f.ID)} }

// await returns the operation that makes the file's first download be told of.
func (r Receipt) await(f File) []table.Op {
	if r.To == "" {
		return nil
	}
	return []table.Op{table.Put(receiptKey(f), receiptItem{layout, r})}
}

// forget returns the operation that removes what await has stored, if it is
// still there.
func (f File) forget() []table.Op {
	if !f.Notify {
		return nil
	}
	return []table.Op{table.Delete(receiptKey(f))}
}

// tell does the counting ops and puts the receipt in the outbox, if it is still
// due. If not, or if the link is gone meanwhile, it does nothing.
func (s *Service) tell(ctx context.Context, l Link, counting []table.Op) (told bool, err error) {
	var due receiptItem
	err = s.Table.Get(ctx, receiptKey(l.File), &due)
	if err != nil {
		return false, envelope.Wrap(err, "reading whether a receipt is due", table.ErrNotFound)
	}
	notice, err := s.Outbox.Message(ctx, Message{
		Channel: Mail, To: due.To, Lang: due.Lang, Base: due.Base, Receipt: true, Recipient: l.To,
	}, l.File)
	if err != nil {
		return false, err
	}
	err = s.Table.Write(ctx, append(slices.Clip(counting), table.Delete(receiptKey(l.File)).If(table.Exists()), notice)...)
	return err == nil, envelope.Wrap(err, "counting the first download", table.ErrCondition)
}
