package links

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// Order says which new links to a file its owner wants.
type Order struct {
	To      []files.Message // each gets their own link; none makes one link for nobody in particular
	Options files.Options
	Until   int64 // Unix seconds; 0 means as long as the file
	// Instead is the id of a link whose recipient was wrong, or empty. That link ends, and the
	// new ones get its message and limits. Uploader is as in Edit.
	Instead  string
	Uploader bool
}

// Get returns a link of a file; id is Own or one of its Recipients. If the file has no such link, or
// has lost it, the fault is NotFound. It makes one call to the table.
func (s *Service) Get(ctx context.Context, f files.File, id string) (Link, error) {
	if id != Own && !slices.Contains(f.Recipients, id) {
		return Link{}, errNoLink()
	}
	l, err := s.read(ctx, s.tokenOf(f, id), "")
	if errors.Is(err, table.ErrNotFound) {
		return l, fault.New(
			fault.NotFound, "this link was lost: make another, or renew the file's own link",
		)
	}
	return l, fault.Wrap(err, "reading a link")
}

func errNoLink() error {
	return fault.New(fault.NotFound, "this file has no link with that id")
}

// Make makes links to a file in the user area, and queues the messages that bring them. If a file
// has too many links, those that lead nowhere any more make room; if MaxLive are live, the fault
// is Conflict. It makes three calls to the table, and one more if messages are counted.
func (s *Service) Make(
	ctx context.Context,
	all *files.Service,
	f files.File,
	by files.By,
	o Order,
) (files.File, []Link, error) {
	at, err := all.Outbox.Reserve(ctx, by, files.Addresses(o.To), time.Time{})
	if err != nil {
		return f, nil, err
	}
	var made []Link
	now, err := all.Amend(ctx, f, func(now *files.File) (ops []table.Op, err error) {
		if made, ops, err = s.order(ctx, all.Outbox, now, o); err != nil {
			return nil, err
		}
		for i := range made {
			made[i].File = *now
			ops = append(ops, s.stored(key(made[i].Token), made[i], *now))
		}
		return ops, nil
	})
	if err != nil {
		if len(o.To) > 0 {
			_ = all.Outbox.Release(
				context.WithoutCancel(ctx),
				[]time.Time{at},
				by,
				files.Addresses(o.To),
			)
		}
		return f, nil, err
	}
	return now, made, nil
}

// order adds links to a record, and returns them with the operations that queue their messages.
func (s *Service) order(
	ctx context.Context,
	outbox files.Outbox,
	f *files.File,
	o Order,
) (made []Link, ops []table.Op, err error) {
	if o.Instead != "" {
		if err := s.instead(ctx, f, &o); err != nil {
			return nil, nil, err
		}
	}
	if s.Key.Revoked(f.Key) {
		f.Key = s.Key.Version()
	}
	if err := s.makeRoom(ctx, f, max(1, len(o.To))); err != nil {
		return nil, nil, err
	}
	f.Limited = f.Limited || o.Options != (files.Options{}) || o.Until != 0
	var uses []Use
	if len(o.To) == 0 {
		id, err := keys.RandomID(s.Random, 8)
		if err != nil {
			return nil, nil, err
		}
		uses = []Use{{Recipient: "link-" + id}}
	}
	about := *f
	if o.Until != 0 {
		about.Expires = o.Until
	}
	for _, m := range o.To {
		op, err := outbox.Message(ctx, m, about, o.Options)
		if err != nil {
			return nil, nil, err
		}
		ops = append(ops, op)
		uses = append(uses, Use{
			Recipient: op.Key.SK,
			Channel:   m.Channel,
			To:        m.To,
			Text:      m.Text,
		})
	}
	for _, use := range uses {
		use.Later = true
		f.Recipients = append(f.Recipients, use.Recipient)
		l := Link{Use: use, Token: s.tokenOf(*f, use.Recipient)}
		if l.Limits, err = s.newLimits(o.Options, o.Until); err != nil {
			return nil, nil, err
		}
		made = append(made, l)
	}
	return made, ops, nil
}

// instead removes a wrong recipient's link from a record, which ends the link, and copies its
// message and limits to the order.
func (s *Service) instead(ctx context.Context, f *files.File, o *Order) error {
	l, err := s.Get(ctx, *f, o.Instead)
	if err != nil {
		return err
	}
	if l.To == "" || !l.SeenBy(true, o.Uploader) {
		return errNoLink()
	}
	if l.State(s.Now()).Over() {
		return fault.New(fault.Conflict, "this link has ended: make another")
	}
	o.Options, o.Until = l.Options, l.Until
	for i := range o.To {
		o.To[i].Text = l.Text
	}
	at := slices.Index(f.Recipients, o.Instead)
	f.Recipients = slices.Delete(f.Recipients, at, at+1)
	return nil
}

// makeRoom removes links that lead nowhere from a record, as many as the new ones need.
func (s *Service) makeRoom(ctx context.Context, f *files.File, wanted int) error {
	over := 1 + len(f.Recipients) + wanted - MaxLive
	if over <= 0 {
		return nil
	}
	links, err := s.Of(ctx, *f)
	if err != nil {
		return err
	}
	for _, l := range links[1:] {
		if over > 0 && l.State(s.Now()).Over() {
			at := slices.Index(f.Recipients, l.Recipient)
			f.Recipients = slices.Delete(f.Recipients, at, at+1)
			over--
		}
	}
	if over > 0 {
		return fault.New(fault.Conflict, "a file can have %d links: end some of them first",
			MaxLive)
	}
	return nil
}

// Edit changes a link of a file for its owner, and returns the changed link. If the file has no
// such link, or it has ended, the fault is NotFound or Conflict. Only the uploader may change
// links that came with the upload, except for the file's own. It makes two calls to the table,
// and three more for each time that something else has changed the file or its links meanwhile.
func (s *Service) Edit(
	ctx context.Context, all *files.Service, f files.File, id string, uploader bool, c Change,
) (l Link, err error) {
	err = all.Retry(ctx, f, func(f files.File) error {
		if l, err = s.Get(ctx, f, id); err != nil {
			return err
		}
		switch {
		case !l.SeenBy(true, uploader):
			return errNoLink()
		case l.Ended != 0 && c.End, c == Change{}:
			return nil
		case l.Ended != 0:
			return fault.New(
				fault.Conflict, "this link has ended: make another, or renew the file's own link",
			)
		}
		op, err := s.edit(&l, c)
		if err != nil {
			return err
		}
		// The edit counts as a change of the record, so that a move or a renewal at the same
		// moment does not write back the link as it was.
		record := table.Update(files.Key(f.Area, f.Owner, f.ID)).
			Set("limited", true).
			Set("changes", f.Changes+1)
		return s.Table.Write(ctx, op.If(table.Exists()), record.If(f.Unchanged()...))
	})
	if err == nil {
		s.forget(l)
	}
	return l, fault.Wrap(err, "changing a link")
}

// SeenBy reports whether a caller, who may be the file's owner or its uploader or both, sees this
// link. Neither sees the recipients that the other has added.
func (l Link) SeenBy(owner, uploader bool) bool {
	switch {
	case l.Recipient == "":
		return true
	case l.Later:
		return owner
	}
	return uploader
}

// Sender returns the name of the user who gave out the link.
func (l Link) Sender() string {
	if l.Later {
		return l.File.Owner
	}
	return l.File.By.User
}

// ID returns the link's id, which is unique among those of its file.
func (l Link) ID() string { return cmp.Or(l.Recipient, Own) }

// RenewOwn ends a file's own link and makes a new one, with the same limits. It makes two calls
// to the table.
func (s *Service) RenewOwn(
	ctx context.Context,
	all *files.Service,
	f files.File,
) (files.File, error) {
	return all.Amend(ctx, f, func(now *files.File) ([]table.Op, error) {
		now.Renewed++
		return nil, nil
	})
}

// anew returns what a renewed own link begins with: the limits, but no uses.
func (l Link) anew() Link {
	l.Use = Use{}
	l.Limits.Taken = 0
	l.Limits.Ended = 0
	l.Takers = nil
	l.Sources = nil
	l.Given = 0
	l.GivenBefore = 0
	l.Hour = 0
	return l
}
