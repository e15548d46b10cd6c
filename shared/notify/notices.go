// Package notify tells people and programs what has happened: by mail, by text
// message, and by events that are posted to webhooks. What is to be told is
// written into the outbox in the transaction of what it is about (enqueue.go),
// and sent afterwards by one scheduler, with a lane for each channel and webhook.
// It imports accounts, files and the ports, and is imported by api and boot
// alone. Start reading here, then outbox.go and schedule.go.
//
// A notice names what it is about and holds no link and no PIN: those are derived
// from the link key when the message is made, so that a reader of the table
// learns neither.
package notify

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"ferry/shared/blob"
	"ferry/shared/table"
)

// Kind is what a notice says.
type Kind string

// The kinds.
const (
	Link    Kind = "link"    // a file's download link
	PIN     Kind = "pin"     // the code that confirms a change of password
	Receipt Kind = "receipt" // to the uploader: the file was downloaded
)

// Channel is how a notice travels.
type Channel string

// The channels.
const (
	Mail Channel = "mail"
	SMS  Channel = "sms"
)

// layout is the version of the stored form.
const layout = 1

// shards is over how many partitions the outbox, events and suppressed addresses
// are spread: one partition of DynamoDB takes 1,000 writes a second. All can be
// read with few calls.
const shards = 8

// Notice is one message to one recipient, as stored.
type Notice struct {
	V       int64   `json:"v"`
	ID      string  `json:"id"` // unique; sorts by time of making
	Kind    Kind    `json:"kind"`
	Channel Channel `json:"channel"`
	To      string  `json:"to"` // an e-mail address or an E.164 number
	Lang    string  `json:"lang"`
	Base    string  `json:"base"`              // the service's address, for the link
	Created int64   `json:"created"`           // Unix seconds
	Expires int64   `json:"expires"`           // Unix seconds: not sent from then on, as link or PIN would be dead
	Request string  `json:"request,omitempty"` // id of the request that made it

	// Kinds Link and Receipt.
	Owner   string    `json:"owner,omitempty"` // in whose area the file is
	Area    blob.Area `json:"area,omitempty"`
	File    int64     `json:"file,omitempty"`
	Name    string    `json:"name,omitempty"`
	Length  int64     `json:"length,omitempty"`
	Sender  string    `json:"sender,omitempty"`  // the user who uploaded
	ReplyTo string    `json:"replyTo,omitempty"` // that user's address, if known
	Message string    `json:"message,omitempty"`

	// Kind Receipt: whose link was used, empty for the file's own.
	Recipient string `json:"recipient,omitempty"`

	// Kind PIN.
	User  string `json:"user,omitempty"`
	Nonce string `json:"nonce,omitempty"`

	// How sending goes. NotBefore is when the next try is due; a try moves it
	// ahead first, so that only one sender at a time holds the notice.
	Tries     int64  `json:"tries"`
	NotBefore int64  `json:"notBefore"`         // Unix milliseconds
	Sending   bool   `json:"sending,omitempty"` // a sender holds it, or died with it
	Retried   int64  `json:"retried,omitempty"` // Unix seconds: an operator's last retry
	LastError string `json:"lastError,omitempty"`

	// How it ended, in Unix milliseconds.
	Outcome   State  `json:"state,omitempty"`     // Sent or Failed; empty in the outbox
	Provider  string `json:"provider,omitempty"`  // the provider's name of the message
	SentAt    int64  `json:"sentAt,omitempty"`    // taken by the provider
	Delivered int64  `json:"delivered,omitempty"` // at the recipient's, if the provider tells
	FailedAt  int64  `json:"failedAt,omitempty"`
}

// ID is the name of a notice made at a time; unique tells it from others of
// the same millisecond.
func ID(now time.Time, unique string) string {
	return fmt.Sprintf("%013d-%s", now.UnixMilli(), unique)
}

// Op is the operation that puts the notice in the outbox, for the transaction
// that writes what it speaks of. now and unique make its ID.
func (n Notice) Op(now time.Time, unique string) table.Op {
	n.V = layout
	n.ID = ID(now, unique)
	n.Created = now.Unix()
	n.NotBefore = now.UnixMilli()
	return table.Put(n.Key(), n).If(table.NotExists())
}

// Key is where the notice is stored until it ends.
func (n Notice) Key() table.Key { return shardedKey(OutboxPrefix, n.ID) }

// shardedKey is the key of an ID in one of the partitions that begin with a prefix.
func shardedKey(prefix, id string) table.Key {
	h := fnv.New32a()
	h.Write([]byte(id))
	return table.Key{PK: prefix + strconv.Itoa(int(h.Sum32()%shards)), SK: id}
}

// partitions are all that begin with a prefix.
func partitions(prefix string) []string {
	all := make([]string, shards)
	for i := range all {
		all[i] = prefix + strconv.Itoa(i)
	}
	return all
}
