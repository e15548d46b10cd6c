package notify

import (
	"fmt"
	"strconv"
	"strings"

	"ferry/shared/files"
)

// Public events tell programs what happens to files, links and passwords: each
// is a CloudEvent (version 1.0, JSON) that is written in the transaction of what
// it tells of, so that there is none of what did not happen, and none is missing.
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

// EventTypes are all types.
func EventTypes() []EventType {
	return []EventType{FileUploaded, FileDownloaded, FileDeleted, FileRestored, LinkSent, LinkFailed, PasswordChanged}
}

// Event is one event before it is recorded.
type Event struct {
	Type    EventType
	Subject string
	Data    any
	// Once tells the event from all others of its type: it makes the
	// event's id, by which receivers know what they have seen.
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

// FileEvent tells what happened to a file. once tells it from the next event of
// the same type, and reason, about the file.
func FileEvent(what EventType, f EventFile, once string) Event {
	return Event{Type: what, Subject: fileSubject(f.Owner, f.ID), Data: f, Once: strings.TrimLeft(string(f.Reason)+" "+once, " ")}
}

// EventLink is what events tell of a recipient's link.
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

// LinkEvent tells that a provider has taken the message with a link, or that the
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

// NewPassword tells that a user has chosen a password; generation is that of
// the user until then.
func NewPassword(user string, how How, generation int64) Event {
	return Event{Type: PasswordChanged, Subject: "users/" + user, Data: passwordData{user, how}, Once: fmt.Sprint(user, "#", generation)}
}
