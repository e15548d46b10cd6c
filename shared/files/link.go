package files

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// Link is a download link with the file that it leads to, stored under the hash
// of its token. A file has its own link, and one for each recipient.
type Link struct {
	File        File   `json:"file"`
	ReceiptDone bool   `json:"told,omitempty"` // no receipt is due for the file any more
	Token       string `json:"-"`
	// Sources are the last ones that a download was counted for, each the start of a hash and
	// the time. Without the link, nobody can find the address from it.
	Sources []string `json:"sources,omitempty"`
	// Given counts all bytes that the link ever gave out, and GivenBefore those before Hour, in
	// Unix seconds.
	Given       int64 `json:"given,omitempty"`
	GivenBefore int64 `json:"givenBefore,omitempty"`
	Hour        int64 `json:"hour,omitempty"`
	read        int64 // the hour in which it was read
	Use
}

func decodeLink(item table.Item) (l Link, err error) {
	err = item.Decode(&l)
	l.File = l.File.completed()
	return l, err
}

func linkKey(token string) table.Key {
	return table.Key{PK: "link#" + auth.HashToken(token), SK: "link"}
}

// Token returns the token of the file's own link.
func (s *Service) Token(f File) string { return s.Key.Of(f.Key).File(f.Area, f.Owner, f.ID) }

// linkKeys returns the keys of the file's own link and then of each recipient's.
func (s *Service) linkKeys(f File) []table.Key {
	keys := []table.Key{linkKey(s.Token(f))}
	for _, id := range f.Recipients {
		keys = append(keys, linkKey(s.Key.Of(f.Key).Recipient(f.Area, f.Owner, f.ID, id)))
	}
	return keys
}

// Links returns a file's own link and then each recipient's. One that is missing or cannot
// be read has no uses. It makes one call to the table.
func (s *Service) Links(ctx context.Context, f File) ([]Link, error) {
	items, err := s.Table.GetMany(ctx, s.linkKeys(f)...)
	if err != nil {
		return nil, fmt.Errorf("reading a file's links: %w", err)
	}
	all := make([]Link, len(items))
	for i, item := range items {
		if all[i], err = s.links.read(item, decodeLink); err != nil && !errors.Is(err, table.ErrNotFound) {
			s.unreadable(ctx, item.Key, err)
			all[i] = Link{}
		}
		if i > 0 {
			all[i].Recipient = f.Recipients[i-1]
		}
	}
	return all, nil
}

// publish returns the operations that make the file visible: they store its
// record, and its links in the order of linkKeys.
func (s *Service) publish(f File, links []Link) []table.Op {
	ops := []table.Op{f.put().If(table.NotExists())}
	for i, key := range s.linkKeys(f) {
		links[i].File = f.stored()
		op := table.Put(key, links[i])
		if f.Expires != 0 {
			op = op.Expire(time.Unix(f.Expires, 0))
		}
		ops = append(ops, op)
	}
	return ops
}

// unchanged returns the conditions that a file's record still names the same bytes, and that its
// links have the same version of their key.
func (f File) unchanged() []table.Cond {
	return []table.Cond{table.Equal("blob", f.Blob), table.AtMost("key", max(1, f.Key))}
}

// unpublish returns the operations that make the file invisible. They are
// refused if it has changed since it was read.
func (s *Service) unpublish(f File) []table.Op {
	ops := []table.Op{table.Delete(f.key()).If(f.unchanged()...)}
	for _, key := range s.linkKeys(f) {
		ops = append(ops, table.Delete(key))
	}
	return ops
}

// ByToken returns the link of a download token of this area. It makes one call to the
// table, or none if this process has just read the link. If the token is unknown, or its
// file has expired or moved, or its key was revoked, the fault is Unauthorized.
func (s *Service) ByToken(ctx context.Context, area blob.Area, token string) (Link, error) {
	caller := fault.CallerOf(ctx)
	caller.Login = "link"
	l, err := s.read(ctx, token)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return Link{}, fmt.Errorf("reading a link: %w", err)
	}
	if err != nil || l.File.Area != area || l.File.Expired(s.Now()) || s.Key.Revoked(l.File.Key) {
		return Link{}, fault.New(fault.Unauthorized, "the download link is not known, or has expired")
	}
	caller.Accept(l.File.Owner)
	return l, nil
}

// read returns a link from the cache, if read within LinkMemory, or from the table.
func (s *Service) read(ctx context.Context, token string) (l Link, err error) {
	if c := s.crowd(token); s.Now().Sub(c.read) < s.LinkMemory {
		return c.link, nil
	}
	var item table.Item
	if err = s.Table.Get(ctx, linkKey(token), &item); err == nil {
		l, err = s.links.read(item, decodeLink)
	}
	if l.Token, l.read = token, hourOf(s.Now()); err == nil {
		s.remember(l)
	}
	return l, err
}

const (
	// sourceMemory is how long redirects and ranges to one source count once.
	sourceMemory = time.Hour
	// maxSources bounds a link's item. A source pushed out by newer ones counts again.
	maxSources = 20
	sourceSize = 8 // characters of a source's hash
)

// CountDownload counts a download by a person, and then records its event. With a source, it
// counts once an hour for this link: the source's further redirects and ranges belong to the
// same download. If the uploader wants a receipt and this is the file's first download, the same
// transaction queues the receipt, and queued is true. That happens once per file, even if
// several links are used at once. It costs one more call, and so does the first download through
// each other link after that. If others are counted at the same moment, a download with a source
// costs two more calls per retry.
func (s *Service) CountDownload(ctx context.Context, l Link, source string) (queued bool, err error) {
	queued, again, err := s.countDownload(ctx, l, source)
	if again {
		return false, nil
	}
	reported, failed := s.Outbox.Event(ctx, Event{What: Downloaded, File: l.File, Link: l.Recipient})
	if len(reported) > 0 { // not with the count: transactions on one link exclude each other
		ctx, cancel := s.within(ctx, followUp)
		defer cancel()
		failed = s.Table.Write(ctx, reported[0].Relax())
	}
	return queued, errors.Join(err, fault.Wrap(failed, "recording a download"))
}

// countDownload counts a download. again is true if it belongs to one already counted.
func (s *Service) countDownload(ctx context.Context, l Link, source string) (queued, again bool, err error) {
	weight, wait := s.crowd(l.Token).weightAt(s.Now()), s.CountWait
	if l.receiptDue() && weight == 1 {
		wait = followUp
	}
	if l.receiptDue() || l.Downloads == 0 { // the first download is never left out
		weight = 1
	}
	if weight > 1 {
		if _, again = l.addSource(source, s.Now()); again || !s.sampled(weight) {
			return false, again, nil
		}
		source = "" // there are too many to remember
	}
	ctx, cancel := s.within(ctx, wait)
	defer cancel()
	n := weight
	s.note(l.Token, func(c *crowd) { n, c.owed = n+c.owed, 0 })
	queued, again, err = s.tryCount(ctx, l, source, n)
	switch {
	case again:
		s.owe(l.Token, n-weight, false)
	case errors.Is(err, table.ErrBusy):
		s.owe(l.Token, n, true)
	case err != nil:
		s.note(l.Token, func(c *crowd) { c.unsure = true })
	}
	return queued, again, fault.Wrap(err, "counting a download", table.ErrCondition)
}

// tryCount adds n to a link's downloads. With a source, it retries while others are counted in
// between, which the counter shows.
func (s *Service) tryCount(ctx context.Context, l Link, source string, n int64) (queued, again bool, err error) {
	const tries = 5
	for try := 1; ; try++ {
		op := table.Update(linkKey(l.Token)).Add("downloads", n).Set("last", s.Now().Unix()).If(table.Exists())
		if l.Downloads == 0 {
			op = op.Set("first", s.Now().Unix())
		}
		if n > 1 || s.crowd(l.Token).unsure {
			op = op.Set("about", true)
		}
		if source == "" {
			queued, err = s.count(ctx, l, op.Delay())
			return queued, false, err
		}
		sources, again := l.addSource(source, s.Now())
		if again {
			return false, true, nil
		}
		queued, err = s.count(ctx, l, op.Set("sources", sources).If(table.AtMost("downloads", l.Downloads)))
		s.forget(l.Token)
		if !errors.Is(err, table.ErrCondition) {
			return queued, false, err
		}
		now, gone := s.ByToken(ctx, l.File.Area, l.Token)
		switch {
		case fault.Is(gone, fault.Unauthorized): // the file was moved meanwhile
			return false, false, err
		case gone != nil || try == tries:
			return false, false, fmt.Errorf("%w: others are counted all the time", table.ErrBusy)
		}
		l = now
	}
}

// addSource returns the sources of the last hour plus this one, and whether it was already among
// them.
func (l Link) addSource(source string, now time.Time) (sources []string, counted bool) {
	hash := auth.HashToken(l.Token + " " + source)[:sourceSize]
	for _, one := range l.Sources {
		at, err := strconv.ParseInt(one[min(sourceSize, len(one)):], 36, 64)
		age := now.Sub(time.Unix(at, 0))
		if err == nil && age >= 0 && age < sourceMemory { // a clock may have been ahead
			sources = append(sources, one)
			counted = counted || strings.HasPrefix(one, hash)
		}
	}
	sources = append(sources, hash+strconv.FormatInt(now.Unix(), 36))
	return sources[max(0, len(sources)-maxSources):], counted
}

// count writes op, which counts a download, and queues the receipt if that is due.
func (s *Service) count(ctx context.Context, l Link, op table.Op) (queued bool, err error) {
	op, given := s.carry(op, l)
	defer func() {
		if err != nil {
			s.note(l.Token, func(c *crowd) { c.given += given })
		}
	}()
	if l.receiptDue() {
		final := op.Set("told", true)
		queued, err := s.countFirst(ctx, l, final)
		if queued || ctx.Err() != nil || err != nil && !errors.Is(err, table.ErrBusy) {
			return queued, err
		}
		if err == nil { // if the table is busy, a concurrent or later download queues the receipt
			op = final
		}
	}
	return false, s.Table.Write(ctx, op.Relax())
}

// CountPreview counts a fetch by a robot.
func (s *Service) CountPreview(ctx context.Context, l Link) error {
	ctx, cancel := s.within(ctx, s.CountWait)
	defer cancel()
	op := table.Update(linkKey(l.Token)).Add("previews", 1).Set("seen", s.Now().Unix()).If(table.Exists())
	// The condition fails if the file was moved meanwhile.
	return fault.Wrap(s.Table.Write(ctx, op.Delay()), "counting a preview", table.ErrCondition)
}

// Use says who got a link, and how it was used.
type Use struct {
	Recipient string `json:"recipient,omitempty"` // ID of the notice with the link; empty for the file's own
	To        string `json:"to,omitempty"`        // the address or number that it was sent to
	Downloads int64  `json:"downloads,omitempty"` // whole ones, by people
	About     bool   `json:"about,omitempty"`     // Downloads is an estimate
	First     int64  `json:"first,omitempty"`     // Unix seconds of the first download
	Last      int64  `json:"last,omitempty"`      // Unix seconds of the last download
	Previews  int64  `json:"previews,omitempty"`  // by robots
	Seen      int64  `json:"seen,omitempty"`      // Unix seconds of the last preview
}
