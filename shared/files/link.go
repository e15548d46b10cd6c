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
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// Link is a download link with the file that it leads to, stored under the hash
// of its token. A file has its own link, and one for each recipient.
type Link struct {
	File        File   `json:"file"`
	ReceiptDone bool   `json:"told,omitempty"` // no receipt is due for the file any more
	Token       string `json:"-"`
	// Sources are the last ones that a download was counted for, each the beginning of
	// a hash and the time, with which nobody without the link finds the address.
	Sources []string `json:"sources,omitempty"`
	Use
}

func decodeLink(item table.Item) (l Link, err error) {
	err = item.Decode(&l)
	return l, err
}

func linkKey(token string) table.Key {
	return table.Key{PK: "link#" + auth.HashToken(token), SK: "link"}
}

// Token returns the token of the file's own link.
func (s *Service) Token(f File) string { return s.Key.File(f.Area, f.Owner, f.ID) }

// linkKeys returns the keys of the file's own link and then of each recipient's.
func (s *Service) linkKeys(f File) []table.Key {
	keys := []table.Key{linkKey(s.Token(f))}
	for _, id := range f.Recipients {
		keys = append(keys, linkKey(s.Key.Recipient(f.Area, f.Owner, f.ID, id)))
	}
	return keys
}

// Links returns a file's own link and then each recipient's. A missing one has no
// uses. It makes one call to the table.
func (s *Service) Links(ctx context.Context, f File) ([]Link, error) {
	items, err := s.Table.GetMany(ctx, s.linkKeys(f)...)
	if err != nil {
		return nil, fmt.Errorf("reading a file's links: %w", err)
	}
	all := make([]Link, len(items))
	for i, item := range items {
		if all[i], err = s.links.read(item, decodeLink); err != nil && !errors.Is(err, table.ErrNotFound) {
			return nil, fmt.Errorf("reading a file's link: %w", err)
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
	ops := []table.Op{table.Put(f.key(), f).If(table.NotExists())}
	for i, key := range s.linkKeys(f) {
		links[i].File = f
		op := table.Put(key, links[i])
		if f.Expires != 0 {
			op = op.Expire(time.Unix(f.Expires, 0))
		}
		ops = append(ops, op)
	}
	return ops
}

// unpublish returns the operations that make the file invisible. They are
// refused if it has changed since it was read.
func (s *Service) unpublish(f File) []table.Op {
	ops := []table.Op{table.Delete(f.key()).If(table.Equal("blob", f.Blob))}
	for _, key := range s.linkKeys(f) {
		ops = append(ops, table.Delete(key))
	}
	return ops
}

// ByToken returns the link of a download token of this area. It makes one call
// to the table. If the token is unknown, or its file has expired or moved, the
// fault is Unauthorized.
func (s *Service) ByToken(ctx context.Context, area blob.Area, token string) (Link, error) {
	caller := envelope.CallerOf(ctx)
	caller.Login = "link"
	var item table.Item
	var l Link
	err := s.Table.Get(ctx, linkKey(token), &item)
	if err == nil {
		l, err = s.links.read(item, decodeLink)
	}
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return Link{}, fmt.Errorf("reading a link: %w", err)
	}
	if err != nil || l.File.Area != area || l.File.Expired(s.Now()) {
		return Link{}, envelope.NewFault(envelope.Unauthorized, "the download link is not known, or has expired")
	}
	l.Token = token
	caller.Accept(l.File.Owner)
	return l, nil
}

const (
	// sourceMemory is for how long redirects and ranges to one source count once.
	sourceMemory = time.Hour
	// maxSources bounds a link's item. A source that further ones push out counts again.
	maxSources = 20
	sourceSize = 8 // characters of a source's hash
)

// CountDownload counts a download by a person. With a source, it counts only once in an
// hour for this link: the source's further redirects and ranges belong to the same
// download. If the uploader wants a receipt and this is the file's first download, the
// same transaction queues the receipt, and queued is true. That happens once per file,
// even if several links are used at once. It costs one more call, and so does the first
// download through each other link after that. If others are counted at the same
// moment, a download with a source costs two more calls for each try.
func (s *Service) CountDownload(ctx context.Context, l Link, source string) (queued bool, err error) {
	const tries = 5
	for range tries {
		op := table.Update(linkKey(l.Token)).Add("downloads", 1).Set("last", s.Now().Unix()).If(table.Exists())
		if l.Downloads == 0 {
			op = op.Set("first", s.Now().Unix())
		}
		if source != "" {
			sources, counted := l.addSource(source, s.Now())
			if counted {
				return false, nil
			}
			// The counter shows whether the link was read before others were counted.
			op = op.Set("sources", sources).If(table.AtMost("downloads", l.Downloads)).Relax()
		} else {
			op = op.Delay()
		}
		if queued, err = s.countDownload(ctx, l, op); source == "" || !errors.Is(err, table.ErrCondition) {
			break
		}
		now, gone := s.ByToken(ctx, l.File.Area, l.Token)
		if gone != nil {
			return false, nil // the file was moved meanwhile
		}
		l = now
	}
	return queued, envelope.Wrap(err, "counting a download", table.ErrCondition)
}

// addSource returns the sources of the last hour with one more, and whether that is
// already among them.
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

// countDownload writes op, which counts a download.
func (s *Service) countDownload(ctx context.Context, l Link, op table.Op) (queued bool, err error) {
	event, err := s.Outbox.Event(ctx, Event{What: Downloaded, File: l.File, Link: l.Recipient})
	if err != nil {
		return false, err
	}
	if l.File.Notify && !l.ReceiptDone && l.File.Area == blob.Files {
		final := op.Set("told", true)
		queued, err := s.countFirst(ctx, l, append(event, final))
		if queued || err != nil && !errors.Is(err, table.ErrBusy) {
			return queued, err
		}
		if err == nil { // if the table is busy, a concurrent or later download queues the receipt
			op = final
		}
	}
	return false, s.count(ctx, append(event, op)...)
}

// CountPreview counts a fetch by a robot.
func (s *Service) CountPreview(ctx context.Context, l Link) error {
	op := table.Update(linkKey(l.Token)).Add("previews", 1).Set("seen", s.Now().Unix()).If(table.Exists())
	// The condition fails if the file was moved meanwhile.
	return envelope.Wrap(s.count(ctx, op.Delay()), "counting a preview", table.ErrCondition)
}

// count writes the operations without waiting for the disk, as they are only statistics.
func (s *Service) count(ctx context.Context, ops ...table.Op) error {
	for i, op := range ops {
		ops[i] = op.Relax()
	}
	err := s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrBusy) && len(ops) > 1 {
		// So many downloads use the link at once that their transactions block
		// each other. Single updates do not.
		err = nil
		for _, op := range ops {
			err = errors.Join(err, s.Table.Write(ctx, op))
		}
	}
	return err
}

// Use says who got a link, and how it was used.
type Use struct {
	Recipient string `json:"recipient,omitempty"` // ID of the notice with the link; empty for the file's own
	To        string `json:"to,omitempty"`        // the address or number that it was sent to
	Downloads int64  `json:"downloads,omitempty"` // whole ones, by people
	First     int64  `json:"first,omitempty"`     // Unix seconds of the first download
	Last      int64  `json:"last,omitempty"`      // Unix seconds of the last download
	Previews  int64  `json:"previews,omitempty"`  // by robots
	Seen      int64  `json:"seen,omitempty"`      // Unix seconds of the last preview
}
