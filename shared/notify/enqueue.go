package notify

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/table"
)

// Outbox writes notices into the outbox, and events beside them. It implements the
// Outbox of auth and of files.
type Outbox struct {
	LimitCounter
	Events *EventRecorder // nil records none
	Random io.Reader
}

var (
	_ auth.Outbox  = Outbox{}
	_ files.Outbox = Outbox{}
)

// NewOutbox returns the Outbox of a service with this address. Events are recorded
// only if there are listeners.
func NewOutbox(p auth.Ports, most Limits, address string, listening bool) Outbox {
	o := Outbox{LimitCounter: LimitCounter{Table: p.Table, Now: p.Now, Most: most}, Random: p.Random}
	if listening {
		o.Events = &EventRecorder{Source: address, Now: p.Now}
	}
	return o
}

// Message implements files.Outbox.
func (o Outbox) Message(ctx context.Context, m files.Message, f files.File) (table.Op, error) {
	unique, err := o.unique()
	if err != nil {
		return table.Op{}, err
	}
	n := Notice{
		Kind: Link, Channel: Channel(m.Channel), To: m.To, Lang: m.Lang, Base: m.Base, Expires: f.Expires,
		Request: envelope.RequestID(ctx), Owner: f.Owner, Area: f.Area, File: f.ID, Name: f.Name, Length: f.Length,
		Sender: m.Sender, ReplyTo: m.ReplyTo, Message: m.Text, Recipient: m.Recipient,
	}
	if m.Receipt { // it is about the past, and so does not expire
		n.Kind, n.Expires = Receipt, 0
	}
	return n.Op(o.Now(), unique), nil
}

// Event implements files.Outbox.
func (o Outbox) Event(ctx context.Context, e files.Event) ([]table.Op, error) {
	if o.Events == nil {
		return nil, nil
	}
	f := eventFile(e.File)
	f.Reason, f.Notification = e.Reason, e.Link
	// A file's bytes get a new key whenever the file moves to another area, so the
	// key distinguishes this event from the next one of the same file.
	once := e.File.Blob
	if e.What == files.Downloaded {
		var err error
		if once, err = o.unique(); err != nil {
			return nil, err
		}
	}
	types := []EventType{
		files.Uploaded: FileUploaded, files.Downloaded: FileDownloaded, files.Deleted: FileDeleted, files.Restored: FileRestored,
	}
	return o.Events.Ops(envelope.RequestID(ctx), FileEvent(types[e.What], f, once)), nil
}

// PIN implements auth.Outbox.
func (o Outbox) PIN(ctx context.Context, u auth.User, nonce, base, lang string, expires time.Time) table.Op {
	n := Notice{
		Kind: PIN, Channel: Mail, To: u.Email, Lang: lang, Base: base,
		User: u.Name, Nonce: nonce, Expires: expires.Unix(), Request: envelope.RequestID(ctx),
	}
	return n.Op(o.Now(), nonce[:16])
}

// PasswordChanged implements auth.Outbox.
func (o Outbox) PasswordChanged(ctx context.Context, user string, forgotten bool, generation int64) []table.Op {
	how := FirstAccess
	if forgotten {
		how = Forgotten
	}
	return o.Events.Ops(envelope.RequestID(ctx), NewPassword(user, how, generation))
}

func (o Outbox) unique() (string, error) {
	b := make([]byte, 8)
	if _, err := io.ReadFull(o.Random, b); err != nil {
		return "", fmt.Errorf("making an identifier: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// eventFile is a file as events show it.
func eventFile(f files.File) EventFile {
	crc, _ := hex.DecodeString(f.CRC64) // it was encoded by package files
	out := EventFile{
		Owner: f.Owner, ID: f.ID, Name: f.Name, Length: f.Length, Type: f.Type, Modified: f.Modified, Area: string(f.Area),
		CRC64NVME: base64.StdEncoding.EncodeToString(crc), SHA256: hex.EncodeToString(f.SHA256), Uploader: f.Uploader,
	}
	if f.Expires != 0 {
		out.Expires = time.Unix(f.Expires, 0).UTC().Format(time.RFC3339)
	}
	return out
}
