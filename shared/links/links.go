// Package links keeps the download links of files: their items in the table, what a token
// leads to, how often a link was used, and the receipt of a file's first download.
//
// files reaches it through the port files.Links, and notify through notify.Links. Start reading with
// Link, then count.go.
package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// Link is a download link with the file that it leads to, stored under the hash
// of its token. A file has its own link, one for each recipient, and others that its owner made.
type Link struct {
	File        files.File `json:"file"`
	Dead        State      `json:"dead,omitempty"`   // why it leads nowhere; then it has no file any more
	DeadBy      string     `json:"deadBy,omitempty"` // and who had given it out
	DeadAt      int64      `json:"deadAt,omitempty"` // Unix seconds since when it leads nowhere
	ReceiptDone bool       `json:"told,omitempty"`   // no receipt is due for the file any more
	Limits
	Token string `json:"-"`
	// Sources are the last sources for which a download was counted, each as the start of a hash
	// and the time. Without the link, nobody can find an address from the hash.
	Sources []string `json:"sources,omitempty"`
	// Given counts all bytes that the link ever gave out, and GivenBefore those before Hour, in
	// Unix seconds.
	Given       int64     `json:"given,omitempty"`
	GivenBefore int64     `json:"givenBefore,omitempty"`
	Hour        int64     `json:"hour,omitempty"`
	read        time.Time // when it was read from the table
	taken       bool      // the claim of this request has taken a download
	spent       bool      // the claim has taken one, but too long ago
	Use
}

// Use says who got a link, and how it was used.
type Use struct {
	Recipient string        `json:"recipient,omitempty"` // ID of the notice with the link; empty for the file's own
	Channel   files.Channel `json:"channel,omitempty"`   // by which it was sent
	To        string        `json:"to,omitempty"`        // the address or number that it was sent to
	Text      string        `json:"text,omitempty"`      // from the sender
	Later     bool          `json:"later,omitempty"`     // the file's owner made it after the upload
	Downloads int64         `json:"downloads,omitempty"` // whole ones, by people
	About     bool          `json:"about,omitempty"`     // Downloads is an estimate
	First     int64         `json:"first,omitempty"`     // Unix seconds of the first download
	Last      int64         `json:"last,omitempty"`      // Unix seconds of the last download
	Previews  int64         `json:"previews,omitempty"`  // by robots
	Seen      int64         `json:"seen,omitempty"`      // Unix seconds of the last preview
}

// Config holds what a Service needs.
type Config struct {
	Table  table.Table
	Key    keys.LinkKey
	Random io.Reader
	Now    func() time.Time
	Outbox Outbox
	Queued func() // called after a receipt was queued
	Log    *slog.Logger
	Bytes  int64 // most that a link gives out in an hour, or ten times its file's length if that is more; 0 is no bound
	// CountWait is the longest that counting a download may delay its answer. 0 is for a table
	// that only this process uses: counts are then written in the background.
	CountWait time.Duration
	// Memory is how long a cached link is used without reading it again; it needs CountWait.
	// An ended link may work that much longer.
	Memory time.Duration
}

// Outbox queues receipts and notices of what guests send, and records the event of a download.
type Outbox interface {
	// Receipt returns the operation that queues a receipt of a file's first download. link is
	// the address or number whose link was used, empty for the file's own.
	Receipt(ctx context.Context, to files.Contact, f files.File, link string) (table.Op, error)
	// Arrived returns the operation that queues a notice for the owner of a request, to be sent
	// when it is due. The operation's sort key is the notice's ID.
	Arrived(to files.Contact, a files.Arrival, due time.Time) (table.Op, error)
	// ArrivedToo returns the operation that adds more files to such a notice; a's names replace
	// those of the notice. It is refused once the notice is being sent.
	ArrivedToo(notice string, a files.Arrival) table.Op
	// Event is as in files.Outbox.
	Event(ctx context.Context, e files.Event) ([]table.Op, error)
}

// Service finds, counts, renews and checks links. It is safe for concurrent use, and has state:
// a process needs one for all its endpoints.
type Service struct {
	Config
	decoded table.Memo[Link]

	mu       sync.Mutex
	live     map[string]*live // by token
	armed    bool             // a flush is scheduled
	flushing chan struct{}    // holds one during a flush
	late     int              // writes by answers that are under way
	ended    sync.Cond        // one of them has ended
}

// New returns a Service.
func New(c Config) *Service {
	s := &Service{Config: c, live: map[string]*live{}, flushing: make(chan struct{}, 1)}
	s.ended.L = &s.mu
	return s
}

func decode(item table.Item) (l Link, err error) {
	err = item.Decode(&l)
	l.File = l.File.Completed()
	if l.To != "" && l.Channel == "" {
		l.Channel = files.ChannelOf(l.To)
	}
	return l, err
}

func key(token string) table.Key {
	return table.Key{PK: partition + keys.HashToken(token), SK: linkItem}
}

const partition, linkItem = "link#", "link"

// Items implements notify.Links.
type Items struct{ Now func() time.Time }

// ItemKey implements notify.Links.
func (Items) ItemKey(token string) table.Key { return key(token) }

// Over implements notify.Links.
func (i Items) Over(item table.Item) bool {
	l, err := decode(item)
	return err == nil && l.State(i.Now()).Over()
}

// Token implements files.Links.
func (s *Service) Token(f files.File) string {
	if f.Renewed > 0 {
		return s.Key.Of(f.Key).Renewed(f.Area, f.Owner, f.ID, f.Renewed)
	}
	return s.Key.Of(f.Key).File(f.Area, f.Owner, f.ID)
}

// tokenOf returns the token of a link of a file; id is Own or one of its Recipients.
func (s *Service) tokenOf(f files.File, id string) string {
	if id == Own {
		return s.Token(f)
	}
	return s.Key.Of(f.Key).Recipient(f.Area, f.Owner, f.ID, id)
}

// Own is the id of a file's own link.
const Own = "own"

// keys returns the keys of the file's own link and then of each recipient's.
func (s *Service) keys(f files.File) []table.Key {
	keys := []table.Key{key(s.Token(f))}
	for _, id := range f.Recipients {
		keys = append(keys, key(s.tokenOf(f, id)))
	}
	return keys
}

// Of returns a file's own link and then those of its Recipients. A link that is missing or cannot
// be read has no uses and no limits. It makes one call to the table.
func (s *Service) Of(ctx context.Context, f files.File) ([]Link, error) {
	all, err := s.OfMany(ctx, []files.File{f}, len(f.Recipients))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OfMany returns what Of returns for each of several files: its own link and then the newest of
// the others, at most this many. It makes a call to the table for each 100 links.
func (s *Service) OfMany(ctx context.Context, all []files.File, others int) ([][]Link, error) {
	now := s.Now()
	some := slices.Clone(all)
	var keys []table.Key
	for i, f := range some {
		some[i].Recipients = f.Recipients[max(0, len(f.Recipients)-others):]
		keys = append(keys, s.keys(some[i])...)
	}
	var items []table.Item
	for part := range slices.Chunk(keys, table.MaxKeys) {
		found, err := s.Table.GetMany(ctx, part...)
		if err != nil {
			return nil, fmt.Errorf("reading files' links: %w", err)
		}
		items = append(items, found...)
	}
	links := make([][]Link, len(some))
	for i, f := range some {
		for j, item := range items[:1+len(f.Recipients)] {
			l, err := s.decoded.Read(item, decode)
			switch {
			case err == nil:
				l.read = now
			case !errors.Is(err, table.ErrNotFound):
				s.Log.ErrorContext(ctx, "an item of the table cannot be read",
					"key", item.Key.String(),
					"error", err)
				l = Link{}
			}
			if j > 0 {
				l.Recipient = f.Recipients[j-1]
			}
			l.Token = s.tokenOf(f, l.ID())
			links[i] = append(links[i], l)
		}
		items = items[1+len(f.Recipients):]
	}
	return links, nil
}

// Find returns the link of a download token of this area, for a request with this claim, which
// may be empty. It makes one call to the table, or none if this process has just read a link
// without limits. If the link leads nowhere, or the claim is not valid, the fault is Unauthorized
// and says why.
func (s *Service) Find(ctx context.Context, area blob.Area, token, claim string) (Link, error) {
	if l, ok := s.cached(token); ok {
		return l, s.check(l, area)
	}
	l, err := s.read(ctx, token, claim)
	err = fault.Wrap(err, "reading a link", table.ErrNotFound)
	if err != nil {
		return Link{}, err
	}
	if err = s.check(l, area); err == nil && claim != "" && l.Guarded() {
		err = s.checkClaim(l, claim)
	}
	return l, err
}

// remember notes a link that was just read, unless something newer is known.
func (h *live) remember(l Link) {
	if !l.read.Before(h.known) {
		h.link, h.known = l, l.read
	}
}

// cached returns a link if it was read within Memory. Until its first download is counted, each
// request must check whether it is the first.
func (s *Service) cached(token string) (l Link, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.live[token]; h != nil {
		l = h.link
	}
	return l, l.Downloads > 0 &&
		!l.Guarded() &&
		!l.receiptDue() &&
		s.Now().Sub(l.read) < s.Memory
}

// forget makes the next request read a link from the table again.
func (s *Service) forget(l Link) {
	s.change(l.Token, func(h *live) { h.link.read = time.Time{} })
}

// check returns a fault that says why a link leads nowhere, or nil if it leads to its file.
func (s *Service) check(l Link, area blob.Area) error {
	state := l.State(s.Now())
	switch {
	case l.Dead == "" && l.File.Area != area:
		state = unknown
	case state.Gives() && s.Key.Revoked(l.File.Key):
		state = Ended
	}
	f := fault.Of(state.fault())
	if f == nil {
		return nil
	}
	if state != unknown {
		f.Cause = l.over(state)
	}
	return f
}

// FindAgain reads a link again, and returns its file as it is now.
func (s *Service) FindAgain(ctx context.Context, l Link) (files.File, error) {
	s.forget(l)
	now, err := s.read(ctx, l.Token, "")
	err = fault.Wrap(err, "reading a link", table.ErrNotFound)
	if err != nil {
		return files.File{}, err
	}
	now.taken = l.taken
	return now.File, s.check(now, l.File.Area)
}

// read reads a link, and whether a claim has taken a download of it, from the table.
func (s *Service) read(ctx context.Context, token, claim string) (l Link, err error) {
	items := make([]table.Item, 1)
	read := s.Now()
	if claim == "" {
		err = s.Table.Get(ctx, key(token), &items[0])
	} else {
		items, err = s.Table.GetMany(ctx, key(token), claimKey(token, claim))
	}
	if err == nil {
		l, err = s.decoded.Read(items[0], decode)
	}
	l.Token, l.read = token, read
	if err == nil && s.Memory > 0 {
		s.change(token, func(h *live) { h.remember(l) })
	}
	if err == nil && len(items) > 1 {
		var c claimed
		known := items[1].Decode(&c) == nil
		l.taken = known && s.Now().Unix() < c.Until
		l.spent = known && !l.taken
	}
	return l, err
}

// Add implements files.Links.
func (s *Service) Add(f *files.File, sending files.Sending) (ops []table.Op, err error) {
	f.Key, f.Limited = s.Key.Version(), sending.Options != (files.Options{})
	for i, at := range s.keys(*f) {
		var l Link
		if i > 0 {
			m := sending.Recipients[i-1]
			l.Use = Use{
				Recipient: f.Recipients[i-1],
				Channel:   m.Channel,
				To:        m.To,
				Text:      m.Text,
			}
		}
		if l.Limits, err = s.newLimits(sending.Options, 0); err != nil {
			return nil, err
		}
		ops = append(ops, s.stored(at, l, *f))
	}
	return append(ops, receiptDue(*f, sending.Tell)...), nil
}

// stored returns the operation that stores a link of a file. A channel that the address tells is not
// stored: decode finds it again.
func (s *Service) stored(at table.Key, l Link, f files.File) table.Op {
	l.File = f.Stored()
	if l.Channel == files.ChannelOf(l.To) {
		l.Channel = ""
	}
	return s.expire(table.Put(at, l), f)
}

// expire lets the table drop the item of a link when nobody needs to know any more why it leads
// nowhere.
func (s *Service) expire(op table.Op, f files.File) table.Op {
	switch {
	case f.Expires != 0:
		return op.Expire(time.Unix(f.Expires, 0).Add(deadMemory))
	case op.Kind == table.KindUpdate: // an update would keep an earlier expiry
		return op.Expire(forever)
	}
	return op
}

// forever is when the table may drop the item of a link that never expires, but once did.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Replace implements files.Links. The uses of links that stay where they are still count
// meanwhile.
func (s *Service) Replace(
	ctx context.Context,
	old files.File,
	now *files.File,
) (ops []table.Op, err error) {
	if s.Key.Revoked(old.Key) {
		now.Key = s.Key.Version()
	}
	links, err := s.Of(ctx, old)
	if err != nil {
		return nil, err
	}
	was, reason := s.keys(old), s.reason(old, *now)
	for i, l := range links {
		id := l.ID()
		at := key(s.tokenOf(*now, id))
		found := !l.read.IsZero()
		before := l
		renewed := i == 0 && now.Renewed > old.Renewed
		if renewed {
			l = l.anew()
		}
		switch {
		case i > 0 && !slices.Contains(now.Recipients, id): // it made room for others
			ops = append(ops, s.bury(was[i], Ended, before))
		case at == was[i] && found:
			ops = append(ops, s.expire(table.Update(at).Set("file", now.Stored()), *now).
				If(table.Exists()))
		default:
			if at != was[i] {
				ops = append(ops, s.bury(was[i], reason, before))
			}
			if !found && old.Limited && !renewed {
				l.Ended = s.Now().Unix() // its limits are lost
			}
			ops = append(ops, s.stored(at, l, *now))
		}
	}
	return ops, nil
}

// reason returns why the links of a file end when its record changes from old to now.
func (s *Service) reason(old, now files.File) State {
	switch {
	case old.Area == now.Area:
		return Ended
	case old.Area == blob.Backup:
		return Restored
	case old.Expired(s.Now()):
		return Expired
	}
	return Deleted
}

// dead is what is left of a link.
type dead struct {
	V   int64  `json:"v"`
	Why State  `json:"dead"`
	By  string `json:"deadBy,omitempty"`
	At  int64  `json:"deadAt,omitempty"`
}

// bury returns the operation that replaces a link with the reason why it leads nowhere: why, from
// now on, unless something else has ended the link before.
func (s *Service) bury(at table.Key, why State, l Link) table.Op {
	over := Over{why, l.Sender(), s.Now().Unix()}
	if before := l.State(s.Now()); before.Over() && before != unknown {
		over = l.over(before)
	}
	op := table.Put(at, dead{table.Format, over.State, over.Sender, over.Since}).
		Expire(s.Now().Add(deadMemory))
	if l.Limit > 0 {
		op = op.If(table.AtMost("taken", l.Taken))
	}
	return op
}

// Remove implements files.Links.
func (s *Service) Remove(f files.File) (ops []table.Op) {
	for _, key := range s.keys(f) {
		ops = append(ops, s.bury(key, Deleted, Link{}))
	}
	if f.Notify {
		ops = append(ops, table.Delete(receiptKey(f)))
	}
	return ops
}
