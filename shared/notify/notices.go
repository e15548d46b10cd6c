// Package notify tells people and programs what has happened: by mail, by text
// message, and by events that are posted to webhooks. Start reading here. Then read
// outbox.go and events.go (what goes into the outbox, in the transaction that it is
// about), attempt.go (one try) and schedule.go (when each is tried).
//
// A notice says what it is about, but holds no link and no PIN. Those are derived
// from the link key when the message is written, so that reading the table
// reveals neither.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// Kind is what a notice says.
type Kind string

// The kinds.
const (
	Link    Kind = "link"    // a file's download link
	PIN     Kind = "pin"     // the code that confirms a password change, and the link to the page for it
	Invite  Kind = "invite"  // to a new user: the link that leads to choosing a password
	Receipt Kind = "receipt" // to the uploader: the file was downloaded
	Arrived Kind = "arrived" // to the maker of a request: guests have sent files
	Missing Kind = "missing" // to the uploader: messages did not arrive
)

// One partition of DynamoDB takes 1,000 writes a second. Reading all shards of the outbox
// or of suppressed addresses still takes few calls. Events need more shards, as each
// upload and download may record one; in the cloud nothing reads them all.
const (
	shards      = 8
	eventShards = 128
)

// Notice is one message to one recipient, as stored.
type Notice struct {
	V       int64         `json:"v"`
	ID      string        `json:"id"` // unique; sorts by time, codes first
	Kind    Kind          `json:"kind"`
	Channel files.Channel `json:"channel"`
	To      string        `json:"to"` // an e-mail address or an E.164 number
	Lang    string        `json:"lang"`
	Base    string        `json:"base"`              // the service's address, for the link; if empty, the sender's is used
	Created int64         `json:"created"`           // Unix seconds
	Expires int64         `json:"expires"`           // Unix seconds: not sent after that, as its link or PIN no longer works
	LogID   string        `json:"request,omitempty"` // of the HTTP request that made it

	// Kinds Link and Receipt.
	Owner   string    `json:"owner,omitempty"` // the owner of the area that holds the file
	Area    blob.Area `json:"area,omitempty"`
	File    int64     `json:"file,omitempty"`
	Name    string    `json:"name,omitempty"`
	Length  int64     `json:"length,omitempty"`
	Sender  string    `json:"sender,omitempty"`  // the user who uploaded
	ReplyTo string    `json:"replyTo,omitempty"` // that user's address, if known
	Message string    `json:"message,omitempty"`
	Terms
	key int64 // version of the key of the file's links, once its record was read

	// Kind Receipt: the recipient whose link was used; empty for the file's own link.
	Recipient string `json:"recipient,omitempty"`

	// For a bundle: how many files it has, and the names of the first ones. For kind Arrived, which
	// has the request's title as Name and the total of bytes as Length: how many files have
	// arrived, by which request, and from whom.
	Files int64    `json:"files,omitempty"`
	First []string `json:"first,omitempty"`
	By    string   `json:"by,omitempty"`
	From  []string `json:"from,omitempty"`

	// Kinds PIN and Invite.
	User  string `json:"user,omitempty"`
	Nonce string `json:"nonce,omitempty"`

	// Kind Missing: when it was counted against the uploader's limits, in Unix milliseconds, and what
	// did not arrive, once that was looked up.
	Counted int64 `json:"counted,omitempty"`
	missing []missed

	// The progress of sending. NotBefore is when the next try is due. A try first moves it into
	// the future, so that only one sender at a time has it.
	Tries     int64  `json:"tries"`
	Waits     int64  `json:"waits,omitempty"`   // tries refused by a limit of the provider, which do not count
	Held      int64  `json:"held,omitempty"`    // Unix seconds: when such a limit first held it up
	NotBefore int64  `json:"notBefore"`         // Unix milliseconds
	Sending   bool   `json:"sending,omitempty"` // a sender has leased it, and may have died since
	Retried   int64  `json:"retried,omitempty"` // Unix seconds: an operator's last retry
	LastError string `json:"lastError,omitempty"`

	// How it ended, in Unix milliseconds.
	Outcome   State  `json:"state,omitempty"`     // Sent or Failed; empty in the outbox
	Provider  string `json:"provider,omitempty"`  // the provider's ID for the message
	SentAt    int64  `json:"sentAt,omitempty"`    // when the provider accepted it
	Delivered int64  `json:"delivered,omitempty"` // when it arrived, if the provider reports that
	FailedAt  int64  `json:"failedAt,omitempty"`
}

// CodePrefix begins the ID of a password code (kind PIN). It sorts before all other IDs, which
// begin with a time, so a sender finds the codes without reading the rest of the outbox.
// afterCodes sorts between the two.
const (
	CodePrefix = "0-"
	afterCodes = "0."
)

// ID returns the ID of a notice made at a time; unique distinguishes it from
// others of the same millisecond.
func ID(now time.Time, unique string) string {
	return fmt.Sprintf("%013d-%s", now.UnixMilli(), unique)
}

// Op returns the operation that puts the notice in the outbox. It belongs in the transaction of
// the change that the notice reports. now and unique make its ID.
func (n Notice) Op(now time.Time, unique string) table.Op {
	n.V = table.Format
	n.ID = ID(now, unique)
	if n.Kind == PIN {
		n.ID = CodePrefix + n.ID
	}
	n.Created = now.Unix()
	n.NotBefore = cmp.Or(n.NotBefore, now.UnixMilli())
	return table.Put(n.Key(), n).If(table.NotExists())
}

// Key is where the notice is stored until it ends.
func (n Notice) Key() table.Key { return shardedKey(OutboxPrefix, n.ID) }

// shardedKey is the key of an ID in one of the partitions that begin with a prefix.
func shardedKey(prefix, id string) table.Key {
	h := fnv.New32a()
	h.Write([]byte(id))
	return table.Key{PK: prefix + strconv.Itoa(int(h.Sum32()%shardsOf(prefix))), SK: id}
}

func shardsOf(prefix string) uint32 {
	if prefix == EventPrefix {
		return eventShards
	}
	return shards
}

// partitions returns all partitions that begin with a prefix.
func partitions(prefix string) []string {
	all := make([]string, shardsOf(prefix))
	for i := range all {
		all[i] = prefix + strconv.Itoa(i)
	}
	return all
}

const (
	// failedPartition holds what could not be delivered, for an operator to see.
	failedPartition = "outbox-failed"
	keepFailed      = 30 * day
	// leastTries is how often even an old notice is tried: it may have waited days for its first
	// try. These tries take about half an hour.
	leastTries = 12

	// holdFor is how long a notice waits for the provider's limits.
	holdFor = 3 * day
)

// noticeEntry is a notice that a sender is working on.
type noticeEntry struct {
	*Sender
	n     Notice
	limit error // the provider's limit that has just refused it, or nil
}

// noticeReader returns the reader of a channel's lane, for notices other than codes.
func (s *Sender) noticeReader(channel files.Channel) reader {
	return func(ctx context.Context, item table.Item) (entry, error) {
		n, _ := read(item)
		if laneOf(n.Channel) != channel {
			return nil, nil
		}
		return s.readNotice(ctx, item)
	}
}

// laneOf returns the channel whose lane, or queue in the cloud, takes the notices of a channel. Those
// of an unknown one go with the mails, whose sender logs them as failed.
func laneOf(channel files.Channel) files.Channel {
	if slices.Contains(files.Channels(), channel) {
		return channel
	}
	return files.Mail
}

// readNotice returns the notice in an item. An item that cannot be read is moved to the failed
// notices.
func (s *Sender) readNotice(ctx context.Context, item table.Item) (entry, error) {
	n, err := read(item)
	if err == nil {
		return &noticeEntry{Sender: s, n: n}, nil
	}
	n.ID = item.Key.SK
	s.Log.Error("notice given up: this version cannot read it", "id", n.ID) // not logged: err may quote it
	ops := s.giveUp(item.Key, n.failed(s.Now(), brief(err)), table.Exists())
	return nil, unlessTaken("giving a notice up", s.Table.Write(ctx, ops...))
}

func read(item table.Item) (Notice, error) {
	n, err := decode(item)
	if err == nil && (n.V != table.Format || n.Key() != item.Key) {
		err = errors.New("not in this version's format")
	}
	return n, err
}

func decode(item table.Item) (n Notice, err error) {
	if err := item.Decode(&n); err != nil {
		return Notice{}, fmt.Errorf("unreadable: %w", err)
	}
	return n, nil
}

func (e *noticeEntry) due() time.Time { return clampDue(e.Now(), e.n.NotBefore) }

func (e *noticeEntry) age(now time.Time) (age time.Duration, tries int64, spent bool) {
	age = now.Sub(time.Unix(e.n.Created, 0))
	switch {
	case e.limit == nil:
		return age, e.n.Tried(), enough(now.Sub(e.n.since()), e.n.Tried())
	case e.limit == mail.ErrQuota && e.n.Kind != PIN: // quotas recover slowly, but a code expires soon
		tries = leastTries + 1 // after that many tries the backoff is longest
	case e.limit == mail.ErrRate && e.n.Kind == PIN: // a rate recovers at once
		tries = min(e.n.Waits, 2) + 1
	default:
		tries = e.n.Waits + 1
	}
	return age, tries, e.heldEnough(now)
}

// Tried returns how often the notice was tried, not counting the tries that a limit of the provider
// refused.
func (n Notice) Tried() int64 { return n.Tries - n.Waits }

// heldEnough reports whether the notice has waited long enough for the provider's limits.
func (e *noticeEntry) heldEnough(now time.Time) bool {
	return e.n.Held != 0 && now.Sub(time.Unix(max(e.n.Held, e.n.Retried), 0)) >= holdFor
}

// hold makes mails wait while the provider's quota is used up, instead of trying each. Password
// codes are still tried: a quota recovers bit by bit.
func (e *noticeEntry) hold(now time.Time) (until time.Time, ops []table.Op) {
	until = clampDue(now, e.quotaFrees.Load())
	if !now.Before(until) || e.n.Channel != files.Mail || e.n.Kind == PIN || e.heldEnough(now) {
		return until, nil
	}
	return until, []table.Op{e.wait(table.Update(e.n.Key()).
		If(e.n.untouched()...), until, mail.ErrQuota)}
}

// wait makes the notice wait for a limit of the provider, and shows its uploader why.
func (e *noticeEntry) wait(op table.Op, until time.Time, limit error) table.Op {
	return op.Set("notBefore", until.UnixMilli()).
		Set("lastError", limit.Error()).
		Set("sending", false).
		Set("held", cmp.Or(e.n.Held, e.Now().Unix()))
}

func (e *noticeEntry) log() (log *slog.Logger, what string) {
	n := e.n
	log = e.Log.With("id", n.ID, "request", n.LogID, "kind", n.Kind, "channel", n.Channel, "to", Mask(n.To), "try", n.Tried())
	if n.Provider != "" {
		log = log.With("provider", n.Provider)
	}
	return log, "notice"
}

func (e *noticeEntry) lease(until time.Time) []table.Op {
	// Each lease counts one try, so the number of tries identifies the lease. If a power cut
	// loses the write, the notice is only sent sooner.
	op := table.Update(e.n.Key()).If(e.n.untouched()...).
		Set("notBefore", until.UnixMilli()).Set("sending", true).Add("tries", 1).Relax()
	e.n.Tries++
	return []table.Op{op}
}

func (e *noticeEntry) postpone(until time.Time, outcome error) []table.Op {
	if e.limit != nil {
		return []table.Op{e.wait(table.Update(e.n.Key()).
			If(e.n.sameLease()).
			Add("waits", 1), until, e.limit)}
	}
	return []table.Op{table.Update(e.n.Key()).If(e.n.sameLease()).
		Set("notBefore", until.UnixMilli()).
		Set("lastError", brief(outcome)).
		Set("sending", false)}
}

// end keeps the notice for the uploader to see, and a failed one for an operator too, unless it
// is obsolete: then an operator could do nothing.
func (e *noticeEntry) end(now time.Time, outcome error) []table.Op {
	n := e.n
	switch {
	case outcome == nil:
		n.Outcome, n.SentAt = Sent, now.UnixMilli()
	case errors.Is(outcome, ErrObsolete):
		n = n.failed(now, brief(outcome))
	default:
		return e.giveUp(n.Key(), n.failed(now, brief(outcome)), n.sameLease())
	}
	return n.end(now, e.OnEnd, n.sameLease())
}

// giveUp moves the notice from key to where an operator sees it.
func (s *Sender) giveUp(key table.Key, n Notice, cond table.Cond) []table.Op {
	failed := table.Put(failedKey(n.ID), n).Expire(time.UnixMilli(n.FailedAt).Add(keepFailed))
	return append([]table.Op{table.Delete(key).If(cond), failed}, n.onEnd(s.OnEnd)...)
}

// sameLease is the condition that the lease is still this sender's.
func (n Notice) sameLease() table.Cond { return table.Equal("tries", n.Tries) }

// untouched returns the conditions that no sender has leased the notice since it
// was read.
func (n Notice) untouched() []table.Cond {
	return []table.Cond{table.Exists(), table.AtMost("tries", n.Tries)}
}

// failed returns the notice as one that did not arrive.
func (n Notice) failed(now time.Time, why string) Notice {
	n.Outcome = Failed
	n.FailedAt = now.UnixMilli()
	n.LastError = why
	return n
}

func (e *noticeEntry) ended() {}

// end returns the writes that take a notice with an outcome out of the outbox. A notice about a
// password is not kept, because its nonce would be kept with it.
func (n Notice) end(now time.Time, also []OnEnd, conds ...table.Cond) []table.Op {
	ops := []table.Op{table.Delete(n.Key()).If(conds...)}
	if !n.isPassword() {
		ops = append(ops, n.keep(now))
	}
	return append(ops, n.onEnd(also)...)
}

// isPassword reports whether the notice is about its recipient's own password.
func (n Notice) isPassword() bool { return n.Kind == PIN || n.Kind == Invite }

// since returns the start of the 24 hours after which a notice is given up.
func (n Notice) since() time.Time { return time.Unix(max(n.Created, n.Retried), 0) }

// expired reports whether the notice's link or PIN no longer works.
func (n Notice) expired(now time.Time) bool { return n.Expires != 0 && now.Unix() >= n.Expires }
