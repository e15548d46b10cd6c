package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// An answer calls MayGive before the bytes and Used after them. What a use adds to the link's
// item is pending until it is written: by the answer itself while the table is quiet, else
// together with other uses, by a timer. DynamoDB takes 1,000 writes of one item a second; when it
// refuses one, the process pauses the writes of that link. An answer waits for its write only a
// moment (CountWait); a slower write continues in the background. If only this process uses the
// table (CountWait is 0), the timer writes all uses.
const (
	countDelay = 200 * time.Millisecond
	// firstPause is how long a process writes nothing to a link after the table refused it; each
	// further refusal doubles that, up to longestPause.
	firstPause, longestPause = time.Second, time.Minute
	// flushTime bounds a flush, so that the end of the process does not wait for a table that is gone.
	flushTime = 10 * time.Second
	// maxLive bounds the links in the cache. When full, those that are idle are dropped.
	maxLive, writesAtOnce, writeTries = 1000, 16, 5

	// sourceMemory is the time in which all redirects and ranges to one source count once.
	sourceMemory = time.Hour
	// A link's item has at most maxSources sources, each with sourceSize characters of its hash.
	// A source that newer ones push out counts again.
	maxSources, sourceSize = 20, 8

	// leastDownloads is how often a file can be downloaded through a link in an hour,
	// however large it is.
	leastDownloads = 10
	// Bytes alone, such as those of most ranges, are written when more than 1/givenShare of the
	// bound are pending.
	givenShare = 1000
)

// live is what this process knows about a link.
type live struct {
	link  Link      // as far as known
	known time.Time // when link was read or written
	delta           // pending
	seen  []string  // the last sources that were counted here

	writing bool
	pause   time.Duration // the last pause
	paused  time.Time     // when it ends

	underWay  int64 // bytes of answers in progress
	sum, hour int64 // bytes given in an hour as far as known, underWay included
}

// delta is what uses add to a link's item.
type delta struct {
	downloads, previews, given int64
	first, last, lastPreview   int64    // Unix seconds
	hour, before               int64    // the hour, if the item has an earlier one, and what the link gave before it
	sources                    []string // of downloads
	about                      bool
}

// Used says what became of an answer.
type Used struct {
	Begun  int64  // the n that MayGive was given
	Bytes  int64  // that were sent
	Whole  bool   // it counts as a download, unless a robot asked
	Robot  bool   // a program made the request on its own
	Source string // if set, its downloads count once an hour
}

// change lets f change what is known about a link.
func (s *Service) change(token string, f func(*live)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.live[token]
	if h == nil {
		for _, due := range []bool{false, true} { // at worst, uses that the table refuses are lost
			if len(s.live) >= maxLive {
				maps.DeleteFunc(s.live, func(_ string, h *live) bool {
					return h.underWay == 0 && !h.writing && (due || !s.due(h))
				})
			}
		}
		h = &live{}
		s.live[token] = h
	}
	f(h)
}

// due reports whether a link's item must be written.
func (s *Service) due(h *live) bool {
	return h.downloads+h.previews > 0 || s.Bytes > 0 && h.given > s.Bytes/givenShare
}

func hourOf(t time.Time) int64 { return t.Truncate(time.Hour).Unix() }

// MayGive notes the start of an answer of at most n bytes; the caller calls Used at its end. If the
// link has reached its bound for this hour, answers in progress included, it returns a TooMany
// fault instead. Bytes count as soon as their answer begins: the table shows them only later.
func (s *Service) MayGive(l Link, n int64) (err error) {
	if s.Bytes == 0 {
		return nil
	}
	now := s.Now()
	s.change(l.Token, func(h *live) {
		if h.hour != hourOf(now) {
			h.hour, h.sum = hourOf(now), h.given+h.underWay
		}
		if l.Hour == h.hour { // l may have been read before this process or others gave more
			h.sum = max(h.sum, l.Given-l.GivenBefore+h.given+h.underWay)
		}
		if h.sum < max(s.Bytes, leastDownloads*l.File.Length) {
			h.sum, h.underWay = h.sum+n, h.underWay+n
			return
		}
		err = fault.Wait(time.Unix(h.hour, 0).Add(time.Hour).Sub(now),
			"this link has given out %d bytes in this hour, which is the limit", h.sum)
	})
	return err
}

// Used counts the use of a link by an answer that MayGive allowed, and records the event of a
// download. If the uploader wants a receipt and this is the file's first download, the same
// transaction queues the receipt; that happens once per file. A slow write continues after Used
// has returned; its error is then only logged. It makes one call to the table, one more for each
// further link's first download, and one for the event. With a source, it makes two more for each
// time that others are counted at the same moment.
func (s *Service) Used(ctx context.Context, l Link, u Used) error {
	counts, paused := s.add(l, u)
	var err error
	if first := counts && l.receiptDue(); s.CountWait > 0 || first {
		wait := s.CountWait
		if first && !paused {
			wait = followUp
		}
		err = s.atMost(ctx, wait, func(ctx context.Context) error {
			return s.write(ctx, l.Token, counts && (first || l.Downloads == 0))
		})
	}
	switch {
	case errors.Is(err, errCounted):
		return nil
	case counts:
		err = errors.Join(err, s.report(ctx, l))
	}
	return err
}

// add makes a use pending. counts reports whether it is a download that was not counted before.
func (s *Service) add(l Link, u Used) (counts, paused bool) {
	now := s.Now()
	s.change(l.Token, func(h *live) {
		h.remember(l)
		if s.Bytes > 0 {
			h.sum += u.Bytes - u.Begun
			h.underWay -= u.Begun
			h.given += u.Bytes
		}
		if hour := hourOf(now); l.Hour != hour && hourOf(l.read) == hour { // a link read earlier has an old sum
			h.delta.hour, h.before = hour, l.Given
		}
		source := ""
		if u.Source != "" {
			source = keys.HashToken(l.Token + " " + u.Source)[:sourceSize]
		}
		known := append(recent(h.link.Sources, now), recent(h.seen, now)...)
		counts, paused = u.Whole &&
			!u.Robot &&
			!(source != "" && has(known, source)), now.Before(h.paused)
		if u.Robot {
			h.previews, h.lastPreview = h.previews+1, now.Unix()
		}
		if counts {
			h.downloads++
			h.first = cmp.Or(h.first, now.Unix())
			h.last = now.Unix()
			h.about = h.about || paused // the process may end before it writes them
		}
		if counts && source != "" && !paused { // else there are too many to remember
			source += strconv.FormatInt(now.Unix(), 36)
			h.sources, h.seen = append(
				h.sources,
				source,
			), append(h.seen[max(0, len(h.seen)-maxSources+1):], source)
		}
		if s.due(h) && (s.CountWait == 0 || h.writing || paused) {
			s.arm()
		}
	})
	return counts, paused
}

// recent returns the sources of the last hour.
func recent(sources []string, now time.Time) (all []string) {
	for _, one := range sources {
		at, err := strconv.ParseInt(one[min(sourceSize, len(one)):], 36, 64)
		if age := now.Sub(time.Unix(at, 0)); err == nil && age >= 0 && age < sourceMemory { // a clock may have been ahead
			all = append(all, one)
		}
	}
	return all
}

// has reports whether a source, or its hash, is among the sources.
func has(sources []string, one string) bool {
	return slices.ContainsFunc(sources, func(s string) bool {
		return s[:sourceSize] == one[:sourceSize]
	})
}

// errCounted is returned if all sources of a delta were counted before.
var errCounted = errors.New("counted before")

// write writes what is pending for a link. It does nothing while another goroutine does so or,
// unless must is set, during a pause.
func (s *Service) write(ctx context.Context, token string, must bool) (err error) {
	var l Link // as before the write, later as after it
	var d delta
	s.change(token, func(h *live) {
		if !h.writing && s.due(h) && (must || !s.Now().Before(h.paused)) {
			l = h.link
			d = h.delta
			h.delta = delta{}
			h.writing = true
		}
	})
	if l.Token == "" {
		return nil
	}
	defer func() { s.change(token, func(h *live) { s.wrote(h, l, d, err) }) }()
	l, err = s.put(ctx, l, d)
	return fault.Wrap(err, "counting a download", table.ErrCondition) // the file was moved
}

// wrote notes the outcome of a write; now is the link after it.
func (s *Service) wrote(h *live, now Link, d delta, err error) {
	h.writing = false
	if s.due(h) { // others have come meanwhile
		s.arm()
	}
	switch {
	case err == nil || errors.Is(err, table.ErrCondition): // or the file was moved
		h.pause = 0
		if !h.link.read.After(now.read) {
			h.link, h.known = now, s.Now()
		}
	case errors.Is(err, table.ErrBusy):
		h.downloads += d.downloads
		h.previews += d.previews
		h.given += d.given
		h.first = cmp.Or(d.first, h.first)
		h.last = max(h.last, d.last)
		h.lastPreview = max(h.lastPreview, d.lastPreview)
		h.sources, h.about = nil, h.about || d.downloads > 0
		h.pause = min(max(firstPause, 2*h.pause), longestPause)
		h.paused = s.Now().Add(h.pause)
		s.arm()
	case errors.Is(err, errCounted):
		h.given += d.given
	default: // d may have been written, so the next read shows which sources count again
		h.given, h.about = h.given+d.given, true
		h.seen = slices.DeleteFunc(h.seen, func(one string) bool { return has(d.sources, one) })
	}
}

// put writes a delta to the item of a link, and returns the link after that. With sources, it
// retries if others were counted meanwhile, which the counter shows.
func (s *Service) put(ctx context.Context, l Link, d delta) (after Link, err error) {
	for try := 1; ; try++ {
		op, after, n := s.update(l, d)
		if n+d.previews == 0 && d.downloads > 0 {
			return l, errCounted
		}
		queued := false
		if n > 0 && l.receiptDue() {
			final := op.Set("told", true)
			if queued, err = s.writeFirst(ctx, l, final); err == nil {
				op, after.ReceiptDone = final, true
			}
		}
		// If transactions are busy, another download queues the receipt.
		if !queued && (err == nil || errors.Is(err, table.ErrBusy) && ctx.Err() == nil) {
			err = s.Table.Write(ctx, op.Relax())
		}
		if len(d.sources) == 0 || !errors.Is(err, table.ErrCondition) {
			return after, err
		}
		now, gone := s.read(ctx, l.Token, "")
		switch {
		case errors.Is(gone, table.ErrNotFound): // the file was moved meanwhile
			return l, err
		case gone != nil || try == writeTries:
			return l, fmt.Errorf("%w: others are counted all the time", table.ErrBusy)
		}
		l, err = now, nil
	}
}

// update returns the operation that adds a delta to a link, the link after it, and how many
// downloads it counts.
func (s *Service) update(l Link, d delta) (op table.Op, after Link, n int64) {
	now := s.Now()
	op = table.Update(key(l.Token)).If(table.Exists())
	after = l
	n = d.downloads
	known := recent(l.Sources, now)
	all := slices.Clone(known)
	for _, one := range d.sources {
		if has(known, one) {
			n--
		} else {
			all = append(all, one)
		}
	}
	if len(all) > len(known) {
		after.Sources = all[max(0, len(all)-maxSources):]
		op = op.Set("sources", after.Sources).If(table.AtMost("downloads", l.Downloads))
	}
	if n > 0 {
		op, after.Downloads = op.Add("downloads", n).Set("last", d.last), l.Downloads+n
	}
	if n > 0 && l.Downloads == 0 {
		op = op.Set("first", d.first)
	}
	if n > 0 && d.about {
		op = op.Set("about", true)
	}
	if d.previews > 0 {
		op = op.Add("previews", d.previews).Set("seen", d.lastPreview)
	}
	if d.given > 0 {
		op, after.Given = op.Add("given", d.given), l.Given+d.given
	}
	if d.given > 0 && d.hour == hourOf(now) && l.Hour != d.hour {
		op = op.Set("hour", d.hour).Set("givenBefore", d.before)
		after.Hour = d.hour
		after.GivenBefore = d.before
	}
	return op, after, n
}

// arm schedules a flush. The caller holds the lock.
func (s *Service) arm() {
	if !s.armed {
		s.armed = true
		time.AfterFunc(countDelay, func() { s.flush(context.Background(), false) })
	}
}

// Flush writes what is pending for all links. Call it before the table is closed.
func (s *Service) Flush(ctx context.Context) {
	s.awaitAnswers()
	s.flush(ctx, true)
}

// flush writes what is pending. Unless must is set, it leaves links whose writes are paused to a
// later flush.
func (s *Service) flush(ctx context.Context, must bool) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	s.flushing <- struct{}{}
	defer func() { <-s.flushing }()
	s.mu.Lock()
	s.armed = false
	var due []string
	for token, h := range s.live {
		switch {
		case !s.due(h):
		case !must && s.Now().Before(h.paused):
			s.arm()
		default:
			due = append(due, token)
		}
	}
	s.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(writesAtOnce)
	for _, token := range due {
		g.Go(func() error {
			s.warn(s.write(ctx, token, must))
			return nil
		})
	}
	_ = g.Wait()
}
