package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// link is what the token of a download link leads to, stored under its hash. A
// file has a link of its own, and one for each recipient.
type link struct {
	File File `json:"file"`
	Told bool `json:"told,omitempty"` // no receipt is due for the file any more
	Use
}

func decodeLink(item table.Item) (l link, err error) {
	err = item.Decode(&l)
	return l, err
}

func linkKey(token string) table.Key {
	return table.Key{PK: "link#" + auth.HashToken(token), SK: "link"}
}

// Token returns the token of the file's own link.
func (s *Service) Token(f File) string { return s.Key.File(f.Area, f.Owner, f.ID) }

// linkKeys are those of the file's own link, and then of its recipients' in their order.
func (s *Service) linkKeys(f File) []table.Key {
	keys := []table.Key{linkKey(s.Token(f))}
	for _, id := range f.Recipients {
		keys = append(keys, linkKey(s.Key.Recipient(f.Area, f.Owner, f.ID, id)))
	}
	return keys
}

// linksOf reads what is stored of a file's links, in the order of linkKeys; a
// missing one is zero. One call to the table.
func (s *Service) linksOf(ctx context.Context, f File) ([]link, error) {
	items, err := s.Table.GetMany(ctx, s.linkKeys(f)...)
	if err != nil {
		return nil, fmt.Errorf("reading a file's links: %w", err)
	}
	all := make([]link, len(items))
	for i, item := range items {
		if all[i], err = s.links.read(item, decodeLink); err != nil && !errors.Is(err, table.ErrNotFound) {
			return nil, fmt.Errorf("reading a file's link: %w", err)
		}
	}
	return all, nil
}

// publish returns the operations that make the file visible: its record and its
// links, in the order of linkKeys, with what was known of each before.
func (s *Service) publish(f File, before []link) []table.Op {
	ops := []table.Op{table.Put(f.key(), f).If(table.NotExists())}
	for i, key := range s.linkKeys(f) {
		l := before[i]
		if l.File = f; i > 0 {
			l.Recipient = f.Recipients[i-1]
		}
		op := table.Put(key, l)
		if f.Expires != 0 {
			op = op.Expire(time.Unix(f.Expires, 0))
		}
		ops = append(ops, op)
	}
	return ops
}

// unlink returns the operations that make the file invisible. They fail if
// it is no longer the one that was read.
func (s *Service) unlink(f File) []table.Op {
	ops := []table.Op{table.Delete(f.key()).If(table.Equal("blob", f.Blob))}
	for _, key := range s.linkKeys(f) {
		ops = append(ops, table.Delete(key))
	}
	return ops
}

// Link is a download link, and the file that it leads to.
type Link struct {
	link
	Token string
}

// ByToken returns the link of a download token of this area. One call to the
// table. A token that is unknown, or whose file is expired or moved, is
// Unauthorized.
func (s *Service) ByToken(ctx context.Context, area blob.Area, token string) (Link, error) {
	var item table.Item
	var l link
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
	return Link{l, token}, nil
}

// CountDownload counts a whole download by a person. If it is the first of a
// file whose uploader wants to hear of that, the same transaction puts the
// receipt in the outbox, which told reports: once for each file, by whatever
// links and however many at once it is downloaded. That costs a call more, as
// does the first download by each other link after it.
func (s *Service) CountDownload(ctx context.Context, l Link) (told bool, err error) {
	op := table.Update(linkKey(l.Token)).Add("downloads", 1).Set("last", s.Now().Unix()).If(table.Exists())
	if l.Downloads == 0 {
		op = op.Set("first", s.Now().Unix())
	}
	event, err := s.Outbox.Event(ctx, Event{What: Downloaded, File: l.File, Link: l.Recipient})
	if err != nil {
		return false, err
	}
	if l.File.Notify && !l.Told && l.File.Area == blob.Files {
		final := op.Set("told", true)
		told, err := s.tell(ctx, l, append(event, final))
		if told || err != nil && !errors.Is(err, table.ErrBusy) {
			return told, err
		}
		if err == nil { // else another of many at once tells of it, or the next
			op = final
		}
	}
	return false, s.count(ctx, append(event, op)...)
}

// CountPreview counts what a robot fetched by itself.
func (s *Service) CountPreview(ctx context.Context, l Link) error {
	return s.count(ctx, table.Update(linkKey(l.Token)).Add("previews", 1).Set("seen", s.Now().Unix()).If(table.Exists()))
}

// count may be late, for it is only a statistic; an event with it is written at
// once, but need not wait for the disk.
func (s *Service) count(ctx context.Context, ops ...table.Op) error {
	for i, op := range ops {
		ops[i] = op.Delay()
	}
	err := s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrBusy) && len(ops) > 1 {
		// So many use the link at once that the transactions of its count stand
		// in each other's way; single updates do not.
		err = nil
		for _, op := range ops {
			err = errors.Join(err, s.Table.Write(ctx, op))
		}
	}
	return envelope.Wrap(err, "counting a use of a link", table.ErrCondition) // moved meanwhile
}

// Use is what is known of the use of a link.
type Use struct {
	Recipient string `json:"recipient,omitempty"` // the notice that brought the link; empty for the file's own
	To        string `json:"to,omitempty"`        // whom it was sent to: an address or number
	Downloads int64  `json:"downloads,omitempty"` // whole ones, by people
	First     int64  `json:"first,omitempty"`     // Unix seconds of the first download
	Last      int64  `json:"last,omitempty"`      // and of the last
	Previews  int64  `json:"previews,omitempty"`  // by robots
	Seen      int64  `json:"seen,omitempty"`      // Unix seconds of the last preview
}

// Uses returns the use of a file's own link, and then that of each recipient's.
// One call to the table.
func (s *Service) Uses(ctx context.Context, f File) ([]Use, error) {
	all, err := s.linksOf(ctx, f)
	if err != nil {
		return nil, err
	}
	uses := make([]Use, len(all))
	for i, l := range all {
		uses[i] = l.Use
	}
	for i, id := range slices.All(f.Recipients) {
		uses[i+1].Recipient = id
	}
	return uses, nil
}
