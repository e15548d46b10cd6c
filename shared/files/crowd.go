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

// DynamoDB takes 1,000 writes and 3,000 reads of one item a second. If more people open one
// link, answers must not wait for their counts: each process then counts only a sample of the
// downloads, each for several, and need not read the link every time. A table that only this
// process uses (CountWait is 0) takes every count.
const (
	// maxWeight is the most downloads that one count stands for.
	maxWeight = 1024
	// cooling is how long a process samples after the table refused a count.
	cooling = time.Minute
	// maxCrowds bounds the links in the cache. When full, the cache is emptied, except for links
	// being served.
	maxCrowds = 1000
	// followUp is the longest that a receipt or an event may delay an answer. No later download
	// makes up for a lost one.
	followUp = time.Second
)

// crowd is what a process caches about a link.
type crowd struct {
	link   Link
	read   time.Time // when link was read
	weight int64     // how many downloads one count stands for, until cool
	cool   time.Time
	owed   int64 // downloads whose count was refused
	unsure bool  // a count timed out, so its outcome is unknown
	given  int64 // bytes not written to the table yet

	underWay  int64 // bytes of answers in progress
	sum, hour int64 // bytes given in an hour as far as known, underWay included
}

// crowds is the cache of links, by token.
type crowds struct {
	mu  sync.Mutex
	all map[string]*crowd
}

// crowd returns what is cached about a link.
func (s *Service) crowd(token string) crowd {
	s.crowds.mu.Lock()
	defer s.crowds.mu.Unlock()
	if c := s.crowds.all[token]; c != nil {
		return *c
	}
	return crowd{}
}

// note lets f change what is cached about a link.
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

// remember caches a link for later requests, but only after its first download: until then, each
// must check whether it is the first.
func (s *Service) remember(l Link) {
	if l.Downloads > 0 && !l.receiptDue() {
		s.note(l.Token, func(c *crowd) { c.link, c.read = l, s.Now() })
	}
}

// forget makes the next look-up of a link read the table.
func (s *Service) forget(token string) { s.note(token, func(c *crowd) { c.read = time.Time{} }) }

func (l Link) receiptDue() bool { return l.File.Notify && !l.ReceiptDone && l.File.Area == blob.Files }

// weightAt returns how many downloads of the link one count stands for.
func (c crowd) weightAt(now time.Time) int64 {
	if now.Before(c.cool) {
		return c.weight
	}
	return 1
}

// sampled reports whether to count this download: true for about one in weight.
func (s *Service) sampled(weight int64) bool {
	var b [8]byte
	_, _ = io.ReadFull(s.Random, b[:]) // if it fails, all are counted
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

// within bounds how long a write may delay an answer.
func (s *Service) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s.CountWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
