package files

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"sync"
	"time"

	"ferry/shared/blob"
)

// DynamoDB takes 1,000 writes and 3,000 reads of one item a second. If more people open
// one link, no answer may wait for its count: each process then counts a sample of the
// downloads, each for several, and need not read the link for each. A table of this
// process's own (CountWait is 0) takes all counts.
const (
	// maxWeight is the most downloads that one count stands for.
	maxWeight = 1024
	// cooling is for how long a process samples after the table has refused a count.
	cooling = time.Minute
	// maxCrowds bounds the links that a process remembers. With one more it begins anew, but
	// for those that it is giving out.
	maxCrowds = 1000
	// followUp is the longest that a receipt or an event delays an answer: no later
	// download makes up for it.
	followUp = time.Second
)

// crowd is what a process remembers of a link.
type crowd struct {
	link   Link
	read   time.Time // when link was read
	weight int64     // how many downloads one count stands for, until cool
	cool   time.Time
	owed   int64 // downloads whose count was refused
	unsure bool  // a count got no answer in time, so nobody knows if it was made
	given  int64 // bytes that no write has carried yet

	underWay  int64 // bytes of answers that have begun and not ended
	sum, hour int64 // bytes given in an hour as far as is known, those under way included
}

// crowds has the links by their tokens.
type crowds struct {
	mu  sync.Mutex
	all map[string]*crowd
}

// crowd returns what is remembered of a link.
func (s *Service) crowd(token string) crowd {
	s.crowds.mu.Lock()
	defer s.crowds.mu.Unlock()
	if c := s.crowds.all[token]; c != nil {
		return *c
	}
	return crowd{}
}

// note lets f change what is remembered of a link.
func (s *Service) note(token string, f func(*crowd)) {
	s.crowds.mu.Lock()
	defer s.crowds.mu.Unlock()
	c := s.crowds.all[token]
	if c == nil {
		if len(s.crowds.all) >= maxCrowds {
			maps.DeleteFunc(s.crowds.all, func(_ string, c *crowd) bool { return c.underWay == 0 })
		}
		c = &crowd{}
		s.crowds.all[token] = c
	}
	f(c)
}

// remember keeps a link for those who open it next. Before its first download each of
// them looks whether theirs is the first.
func (s *Service) remember(l Link) {
	if l.Downloads > 0 && !l.receiptDue() {
		s.note(l.Token, func(c *crowd) { c.link, c.read = l, s.Now() })
	}
}

// forget lets the next look-up of a link read it.
func (s *Service) forget(token string) { s.note(token, func(c *crowd) { c.read = time.Time{} }) }

func (l Link) receiptDue() bool { return l.File.Notify && !l.ReceiptDone && l.File.Area == blob.Files }

// weightAt returns how many downloads of the link one count stands for.
func (c crowd) weightAt(now time.Time) int64 {
	if now.Before(c.cool) {
		return c.weight
	}
	return 1
}

// sampled reports, for one download in so many, that it is to be counted.
func (s *Service) sampled(weight int64) bool {
	var b [8]byte
	_, _ = io.ReadFull(s.Random, b[:]) // without it, all are counted
	return binary.LittleEndian.Uint64(b[:])%uint64(weight) == 0
}

// owe remembers n downloads of a link that were not counted. If the table is too busy with
// the link, later counts stand for more.
func (s *Service) owe(token string, n int64, busy bool) {
	if s.CountWait == 0 {
		return
	}
	s.note(token, func(c *crowd) {
		c.owed += n
		if busy {
			c.weight, c.cool = min(2*c.weightAt(s.Now()), maxWeight), s.Now().Add(cooling)
		}
	})
}

// within bounds for how long a write may delay an answer.
func (s *Service) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s.CountWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
