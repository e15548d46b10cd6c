package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ferry/shared/files"
	"ferry/shared/table"
)

// Public events tell programs what happens to files, links and passwords. Each is
// a CloudEvent (version 1.0, JSON), written in the same transaction as the change
// that it reports: no event is missing, and none reports what did not happen.
// In the cloud the table's stream brings it to a topic; on one machine it is
// posted to webhooks.
//
// An event holds no link, token or PIN, and no whole address of a recipient.
// The webhooks of shared/openapi describe each type; tests hold every event
// that is recorded to that description.

// EventType is what has happened.
type EventType string

// The types.
const (
	FileUploaded    EventType = "file.uploaded"
	FileDownloaded  EventType = "file.downloaded"
	FileDeleted     EventType = "file.deleted"
	FileRestored    EventType = "file.restored"
	LinkSent        EventType = "link.sent"
	LinkFailed      EventType = "link.failed"
	PasswordChanged EventType = "user.password-changed"
)

// EventTypes returns all types.
func EventTypes() []EventType {
	return []EventType{FileUploaded, FileDownloaded, FileDeleted, FileRestored, LinkSent, LinkFailed, PasswordChanged}
}

// Event is one event before it is recorded.
type Event struct {
	Type    EventType
	Subject string
	Data    any
	// Once distinguishes the event from all others of its type. The event's id
	// is made from it, and receivers know by the id what they have seen.
	Once string
}

// EventFile is a file as an event shows it. The fields are those of GET /files/{id}.
type EventFile struct {
	Owner     string `json:"owner"`
	ID        int64  `json:"id"`
	Name      string `json:"name"`
	Length    int64  `json:"length"` // bytes
	Type      string `json:"type,omitempty"`
	Modified  int64  `json:"modified"`          // Unix milliseconds
	Expires   string `json:"expires,omitempty"` // RFC 3339, UTC: when it leaves the area; missing if never
	Area      string `json:"area"`              // where it is now, or was last
	CRC64NVME string `json:"crc64nvme"`         // base64 of 8 bytes, big endian
	SHA256    string `json:"sha256,omitempty"`  // hexadecimal
	Uploader  string `json:"uploader,omitempty"`
	// Why a file was deleted, and whose link it was downloaded by, if not by
	// the file's own.
	Reason       files.Reason `json:"reason,omitempty"`
	Notification string       `json:"notification,omitempty"`
}

func fileSubject(owner string, id int64) string {
	return "files/" + owner + "/" + strconv.FormatInt(id, 10)
}

// FileEvent reports what happened to a file. once distinguishes it from the file's
// next event of the same type and reason.
func FileEvent(what EventType, f EventFile, once string) Event {
	return Event{Type: what, Subject: fileSubject(f.Owner, f.ID), Data: f, Once: strings.TrimLeft(string(f.Reason)+" "+once, " ")}
}

// EventLink is what events say about a recipient's link.
type EventLink struct {
	Notification string `json:"notification"` // as GET /files/{id} names it
	Channel      string `json:"channel"`      // mail or sms
	To           string `json:"to"`           // masked
	Owner        string `json:"owner"`        // of the file
	ID           int64  `json:"id"`           // of the file
	Name         string `json:"name"`         // of the file
	Sender       string `json:"sender,omitempty"`
	Error        string `json:"error,omitempty"` // LinkFailed alone
}

// LinkEvent reports that a provider has taken the message with a link, or that the
// link did not reach its recipient, and will not.
func LinkEvent(what EventType, l EventLink) Event {
	return Event{Type: what, Subject: fileSubject(l.Owner, l.ID), Data: l, Once: l.Notification}
}

// How a user has come to a new password.
type How string

// The ways.
const (
	Forgotten   How = "forgotten"    // by a link and the PIN from the mail
	FirstAccess How = "first-access" // in place of a temporary one
)

type passwordData struct {
	User string `json:"user"`
	How  How    `json:"how"`
}

// NewPassword reports that a user has chosen a password; generation is the user's
// generation until then.
func NewPassword(user string, how How, generation int64) Event {
	return Event{Type: PasswordChanged, Subject: "users/" + user, Data: passwordData{user, how}, Once: fmt.Sprint(user, "#", generation)}
}

const (
	// eventLife is how long an event is kept if nobody takes it away.
	eventLife = 7 * 24 * time.Hour
	// anonymous is the source of events of a service that has no address of
	// its own: a relative reference, which CloudEvents allows.
	anonymous = "ferry"
)

// EventRecorder makes the operations that record events. A nil one records nothing.
// It is safe for concurrent use.
type EventRecorder struct {
	Source string // the service's address, or empty
	Now    func() time.Time
}

// RecordedEvent is an event as stored.
type RecordedEvent struct {
	V    int64     `json:"v"`
	ID   string    `json:"id"` // unique; sorts by time
	Type EventType `json:"type"`
	Time int64     `json:"time"` // Unix milliseconds
	Body string    `json:"body"` // the CloudEvent, as it is sent
	// Request is the id of the request that caused it, or empty.
	Request string `json:"request,omitempty"`
}

// cloudEvent is the JSON form of CloudEvents 1.0.
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        EventType `json:"type"`
	Subject     string    `json:"subject"`
	Time        string    `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Request     string    `json:"requestid,omitempty"` // an extension attribute
	Data        any       `json:"data"`
}

// Ops returns the operations for the transaction that the events report: one for
// each event, none if r is nil. request is the id of the request that caused them,
// or empty.
func (r *EventRecorder) Ops(request string, all ...Event) []table.Op {
	if r == nil {
		return nil
	}
	ops := make([]table.Op, len(all))
	for i, e := range all {
		now := r.Now().UTC()
		stored := r.record(e, request, now)
		ops[i] = table.Put(stored.Key(), stored).Expire(now.Add(eventLife))
	}
	return ops
}

func (r *EventRecorder) record(e Event, request string, now time.Time) RecordedEvent {
	sum := sha256.Sum256([]byte(string(e.Type) + "\x00" + e.Once))
	id := fmt.Sprintf("%013d-%x", now.UnixMilli(), sum[:8])
	body, _ := json.Marshal(cloudEvent{ // its data are structs of text and numbers, which always marshal
		SpecVersion: "1.0", ID: id, Source: cmp.Or(r.Source, anonymous), Type: e.Type, Subject: e.Subject,
		Time: now.Format(time.RFC3339Nano), ContentType: "application/json", Request: request, Data: e.Data,
	})
	return RecordedEvent{V: layout, ID: id, Type: e.Type, Time: now.UnixMilli(), Body: string(body), Request: request}
}

// Key is where the event is stored.
func (r RecordedEvent) Key() table.Key { return shardedKey(EventPrefix, r.ID) }

// Events returns a function that records public events about links that were sent
// or failed. It returns nil if r is nil.
func Events(r *EventRecorder) Settled {
	if r == nil {
		return nil
	}
	return func(n Notice, s State) []table.Op {
		l := EventLink{
			Notification: n.ID, Channel: string(n.Channel), To: Mask(n.To), Owner: n.Owner, ID: n.File, Name: n.Name, Sender: n.Sender,
		}
		what := LinkSent
		if s != Sent {
			what, l.Error = LinkFailed, cmp.Or(n.LastError, "unknown")
		}
		return r.Ops(n.Request, LinkEvent(what, l))
	}
}

// listening is in the table while the server has webhooks. On one machine only the
// server knows that, but commands that run beside it record events too.
type listening struct {
	V int64 `json:"v"`
}

func listeningKey() table.Key { return table.Key{PK: "events", SK: "listening"} }

// NoteListening notes whether there are listeners.
func NoteListening(ctx context.Context, t table.Table, on bool) error {
	op := table.Delete(listeningKey())
	if on {
		op = table.Put(listeningKey(), listening{layout})
	}
	if err := t.Write(ctx, op); err != nil {
		return fmt.Errorf("noting whether somebody listens to events: %w", err)
	}
	return nil
}

// Listening returns what NoteListening noted last.
func Listening(ctx context.Context, t table.Table) (on bool, err error) {
	var l listening
	err = t.Get(ctx, listeningKey(), &l)
	if errors.Is(err, table.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading whether somebody listens to events: %w", err)
	}
	return true, nil
}
