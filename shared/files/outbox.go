package files

import (
	"context"
	"strings"
	"time"

	"ferry/shared/table"
)

// Outbox queues messages to users and events for programs about files. Its operations
// belong in the same transaction as the change that they report, except for a download's
// event. It is safe for concurrent use.
type Outbox interface {
	// Reserve counts a message from by, who stores files, to each address and number in to, which
	// must all differ. It returns the time under which it counted them. A TooMany fault says when
	// to retry; an Invalid fault means that a retry will never work. After a fault nothing is
	// counted. It makes one call to the table, or none if there are no limits.
	//
	// What was reserved at the time before is counted again only if another hour or day has begun
	// since. Then marks are written in the same call. If the condition of one is refused, the
	// error is table.ErrCondition.
	Reserve(
		ctx context.Context, by By, to []string, before time.Time, marks ...func(at time.Time) table.Op,
	) (at time.Time, err error)
	// Release gives back what was reserved at these times.
	Release(ctx context.Context, reserved []time.Time, by By, to []string) error
	// Message queues a notice about a link to a file, which expires with f. The sort key of the
	// operation is the notice's ID.
	Message(ctx context.Context, m Message, f File, link Options) (table.Op, error)
	// Event reports an event to the programs that listen, if there are any.
	Event(ctx context.Context, e Event) ([]table.Op, error)
}

// Channel is how a message reaches its recipient.
type Channel string

// The channels.
const (
	Mail Channel = "mail"
	SMS  Channel = "sms"
)

// Channels returns all channels, in the order in which recipients are listed.
func Channels() []Channel { return []Channel{SMS, Mail} }

// ChannelOf returns the channel that the form of an address or number suggests. It is for what people
// type, and for recipients that are stored without their channel.
func ChannelOf(to string) Channel {
	if strings.Contains(to, "@") {
		return Mail
	}
	return SMS
}

// Message is what a notice tells one recipient: the link to a file.
type Message struct {
	Channel Channel `json:"channel"`
	To      string  `json:"to"` // an e-mail address or an E.164 number
	Lang    string  `json:"lang"`
	Base    string  `json:"base"`              // the service's address, for the link
	Sender  string  `json:"sender,omitempty"`  // the user who uploaded
	ReplyTo string  `json:"replyTo,omitempty"` // that user's address, if known
	Text    string  `json:"message,omitempty"` // from the sender
}

// Event is what has happened to a file.
type Event struct {
	What   What
	File   File
	Reason Reason // of Deleted
	Link   string // of Downloaded: ID of the notice with the link; empty for the file's own
}

// What is a kind of event, as programs know it.
type What string

// The kinds of events.
const (
	Uploaded   What = "file.uploaded"
	Downloaded What = "file.downloaded"
	Deleted    What = "file.deleted"
	Restored   What = "file.restored"
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
