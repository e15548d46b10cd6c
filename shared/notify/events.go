package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// Public events tell programs what happens to files, links and passwords. Each is a CloudEvent
// (version 1.0, JSON), written in the same transaction as the change that it reports. So no
// event is missing, and none reports what did not happen. Only a download's event is written on
// its own: a download changes nothing but statistics. In the cloud the table's stream carries
// events to a topic; on one machine they are posted to webhooks.
//
// An event holds no link, token or PIN, and no whole address of a recipient.
// The webhooks in shared/openapi describe each type; tests check every recorded
// event against that description.

// EventType is what has happened.
type EventType string

// The types, besides those of files.What.
const (
	LinkSent        EventType = "link.sent"
	LinkFailed      EventType = "link.failed"
	PasswordChanged EventType = "user.password-changed"
)

// FileFacts is what both GET /files/{id} and events say about a file.
type FileFacts struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Length    int64     `json:"length"` // bytes
	Type      string    `json:"type,omitempty"`
	Modified  int64     `json:"modified"`          // Unix milliseconds
	Expires   string    `json:"expires,omitempty"` // RFC 3339, UTC: when it leaves the area; missing if never
	Area      blob.Area `json:"area"`              // where it is now, or was last
	CRC64NVME string    `json:"crc64nvme"`         // base64 of 8 bytes, big endian, as in S3
	SHA256    string    `json:"sha256,omitempty"`  // hexadecimal; missing if the upload did not state it
}

// FactsOf returns the facts about a file.
func FactsOf(f files.File) FileFacts {
	crc, _ := hex.DecodeString(f.CRC64) // it was encoded by package files
	facts := FileFacts{
		ID:        f.ID,
		Name:      f.Name,
		Length:    f.Length,
		Type:      f.Type,
		Modified:  f.Modified,
		Area:      f.Area,
		CRC64NVME: base64.StdEncoding.EncodeToString(crc),
		SHA256:    hex.EncodeToString(f.SHA256),
	}
	if f.Expires != 0 {
		// This works in any year. The JSON of time.Time ends at 9999.
		facts.Expires = time.Unix(f.Expires, 0).UTC().Format(time.RFC3339)
	}
	return facts
}

// fileData is a file as an event shows it.
type fileData struct {
	Owner string `json:"owner"`
	FileFacts
	Uploader string       `json:"uploader,omitempty"`
	Guest    string       `json:"by,omitempty"`      // the name that the guest who uploaded gave
	Asked    string       `json:"request,omitempty"` // the request whose link that guest used
	Reason   files.Reason `json:"reason,omitempty"`  // why the file was deleted
	// Notification names the recipient's link that was used; empty for the file's own.
	Notification string `json:"notification,omitempty"`
}

// linkData is what events say about a recipient's link.
type linkData struct {
	Notification string `json:"notification"` // as GET /files/{id} names it
	Channel      string `json:"channel"`      // mail or sms
	To           string `json:"to"`           // masked
	Owner        string `json:"owner"`        // of the file
	ID           int64  `json:"id"`           // of the file
	Name         string `json:"name"`         // of the file
	Sender       string `json:"sender,omitempty"`
	Error        string `json:"error,omitempty"` // only for LinkFailed
}

type passwordData struct {
	User string `json:"user"`
	How  string `json:"how"`
}

const (
	// eventLife is how long an event is kept if no webhook takes it, or its webhook is no longer
	// configured.
	eventLife = 7 * day
	// anonymous is the source of events if the service has no address: a relative
	// reference, which CloudEvents allows.
	anonymous = "ferry"
)

// RecordedEvent is an event as stored.
type RecordedEvent struct {
	V    int64     `json:"v"`
	ID   string    `json:"id"` // unique; sorts by time
	Type EventType `json:"type"`
	Time int64     `json:"time"` // Unix milliseconds
	Body string    `json:"body"` // the CloudEvent, as it is sent
	// LogID is that of the HTTP request that caused it, or empty.
	LogID string `json:"request,omitempty"`
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
	LogID       string    `json:"requestid,omitempty"` // an extension attribute
	Data        any       `json:"data"`
}

// Key is where the event is stored.
func (r RecordedEvent) Key() table.Key { return shardedKey(EventPrefix, r.ID) }

// record returns the operation that records an event, or none if nobody listens. It belongs in
// the transaction of the change that the event reports. logID is that of the HTTP request that
// caused it, or empty. once distinguishes the event from all others of its type: the event's id
// is made from it, and receivers recognize repeats by the id.
func (o Outbox) record(
	logID string,
	what EventType,
	subject, once string,
	data any,
) []table.Op {
	if !o.Listening {
		return nil
	}
	now := o.Now().UTC()
	sum := sha256.Sum256([]byte(string(what) + "\x00" + once))
	id := fmt.Sprintf("%013d-%x", now.UnixMilli(), sum[:8])
	body, _ := json.Marshal(cloudEvent{ // structs of text and numbers always marshal
		SpecVersion: "1.0",
		ID:          id,
		Source:      cmp.Or(o.Source, anonymous),
		Type:        what,
		Subject:     subject,
		Time:        now.Format(time.RFC3339Nano),
		ContentType: "application/json",
		LogID:       logID,
		Data:        data,
	})
	e := RecordedEvent{
		V:     table.Format,
		ID:    id,
		Type:  what,
		Time:  now.UnixMilli(),
		Body:  string(body),
		LogID: logID,
	}
	return []table.Op{table.Put(e.Key(), e).Expire(now.Add(eventLife))}
}

// Event implements files.Outbox.
func (o Outbox) Event(ctx context.Context, e files.Event) ([]table.Op, error) {
	// A file's bytes get a new key whenever the file moves to another area, so the
	// key distinguishes this event from the next one of the same file.
	once := e.File.Blob
	if o.Listening && e.What == files.Downloaded {
		var err error
		if once, err = keys.RandomID(o.Random, 8); err != nil {
			return nil, err
		}
	}
	once = strings.TrimLeft(string(e.Reason)+" "+once, " ")
	data := fileData{
		Owner:        e.File.Owner,
		FileFacts:    FactsOf(e.File),
		Uploader:     e.File.Uploader(),
		Guest:        e.File.By.Called,
		Asked:        e.File.By.Request,
		Reason:       e.Reason,
		Notification: e.Link,
	}
	subject := fileSubject(e.File.Owner, e.File.ID)
	return o.record(fault.LogID(ctx), EventType(e.What), subject, once, data), nil
}

func fileSubject(owner string, id int64) string { return fmt.Sprintf("files/%s/%d", owner, id) }

// PasswordChanged implements users.Outbox.
func (o Outbox) PasswordChanged(
	ctx context.Context,
	user, how string,
	generation int64,
) []table.Op {
	return o.record(
		fault.LogID(ctx),
		PasswordChanged,
		"users/"+user,
		fmt.Sprint(user, "#", generation),
		passwordData{user, how},
	)
}

// LinkEnded is an OnEnd. It records that a provider has accepted the message with a
// link, or that the link will never reach its recipient.
func (o Outbox) LinkEnded(n Notice, s State) []table.Op {
	what, l := LinkSent, linkData{
		Notification: n.ID,
		Channel:      string(n.Channel),
		To:           Mask(n.To),
		Owner:        n.Owner,
		ID:           n.File,
		Name:         n.Name,
		Sender:       n.Sender,
	}
	if s != Sent {
		what, l.Error = LinkFailed, cmp.Or(n.LastError, "unknown")
	}
	return o.record(n.LogID, what, fileSubject(n.Owner, n.File), n.ID, l)
}

// listeningKey names an item that exists while the server has webhooks. On one machine only
// the server knows its webhooks, but commands that run beside it record events too.
func listeningKey() table.Key { return table.Key{PK: "events", SK: "listening"} }

// NoteListening stores whether events have listeners.
func NoteListening(ctx context.Context, t table.Table, on bool) error {
	op := table.Delete(listeningKey())
	if on {
		op = table.Put(listeningKey(), struct {
			V int64 `json:"v"`
		}{table.Format})
	}
	return fault.Wrap(t.Write(ctx, op), "storing whether events have listeners")
}

// Listening returns what NoteListening stored last.
func Listening(ctx context.Context, t table.Table) (on bool, err error) {
	err = t.Get(ctx, listeningKey(), &struct{}{})
	return err == nil, fault.Wrap(
		err,
		"reading whether events have listeners",
		table.ErrNotFound,
	)
}
