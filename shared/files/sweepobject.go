package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

// objectTime is the longest that a run works on one object. Others are swept beside it.
const objectTime = 10 * time.Minute

// visit starts to sweep some objects, with one call to the table for their records and more only
// for what must change. then gets each object, and when to look at it again. visit returns how
// many it started before time ran out.
func (s *Sweeper) visit(
	ctx context.Context, area blob.Area, objects []blob.Object,
	then func(ctx context.Context, area blob.Area, o blob.Object, next int64) error,
) (visited int, err error) {
	if !s.inTime(ctx) {
		return 0, nil
	}
	items, err := s.recordsOf(ctx, area, objects)
	if err != nil {
		return 0, err
	}
	for _, o := range objects {
		s.sem <- struct{}{}
		if ctx.Err() != nil || !s.inTime(ctx) {
			<-s.sem
			return visited, ctx.Err()
		}
		visited++
		s.group.Go(func() error {
			defer func() { <-s.sem }()
			limit := objectTime
			if until, ok := ctx.Deadline(); ok { // the run must still note where it is
				limit = min(limit, time.Until(until)-s.Reserve/2)
			}
			inTime, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			next, err := s.sweepObject(inTime, area, o, items)
			if ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			switch {
			case err != nil && inTime.Err() != nil:
				s.count(&s.report.Unfinished)
				s.Log.Warn("an object takes long; it continues in the next run",
					"area", area,
					"key", o.Key,
					"error", err)
				next = s.Now().Unix()
			case err != nil:
				s.count(&s.report.Failed)
				s.Log.Error("an object could not be swept",
					"area", area, "key", o.Key, "error", err)
				next = s.Now().Add(tryAgain).Unix()
			}
			return then(ctx, area, o, next)
		})
	}
	return visited, nil
}

// recordsOf returns the item of the record for each object whose key Ferry made.
// An object without a record has an item that is not found.
func (s *Sweeper) recordsOf(
	ctx context.Context,
	area blob.Area,
	objects []blob.Object,
) (map[string]table.Item, error) {
	var known []string
	var keys []table.Key
	for _, o := range objects {
		if owner, id, ok := ParseBlobKey(o.Key); ok {
			known, keys = append(known, o.Key), append(keys, Key(area, owner, id))
		}
	}
	found, err := s.Table.GetMany(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	items := map[string]table.Item{}
	for i, item := range found {
		items[known[i]] = item
	}
	return items, nil
}

const (
	// gone and stays stand in for the time to look again: the object is no longer there, or
	// needs no further look.
	gone, stays = -1, 0
	// tryAgain is when to look again at an object that failed.
	tryAgain = 24 * time.Hour
)

// sweepObject does what is due for an object, and returns when to look at it again, in Unix
// seconds.
func (s *Sweeper) sweepObject(
	ctx context.Context, area blob.Area, o blob.Object, items map[string]table.Item,
) (next int64, err error) {
	s.count(&s.report.Seen)
	item, ours := items[o.Key]
	if !ours { // an operator put it there, so leave it
		s.Log.Warn("an object has a key that Ferry does not make", "area", area, "key", o.Key)
		return stays, nil
	}
	f, err := DecodeFile(item)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return stays, err
	}
	oldAt := o.Modified.Add(s.Grace + time.Second)
	if f.Blob != o.Key {
		return s.sweepUnnamed(ctx, area, o, oldAt)
	}
	owner, err := s.owner(ctx, f.Owner)
	// The owner may have been read before a later user of the name was added.
	// Then the file has the later incarnation, and stays.
	ownerGone := owner.removed || owner.Incarnation > f.Incarnation
	switch {
	case err != nil:
		return stays, err
	case owner.lost:
		return s.Now().Add(tryAgain).Unix(), nil
	case ownerGone && s.Now().After(oldAt), f.Expired(s.Now()) && area == blob.Backup:
		return gone, s.did(&s.report.Purged, s.purge(ctx, f))
	case ownerGone:
		return oldAt.Unix(), nil
	case f.Expired(s.Now()):
		moved, err := s.move(ctx, owner.User, f, blob.Backup, Event{
			What:   Deleted,
			Reason: ByRetention,
		})
		switch {
		case fault.Is(err, fault.NotFound):
			return gone, nil // its owner moved it first
		case errors.Is(err, errExtended):
			return moved.Expires, nil
		case err == nil:
			err = s.bring(ctx, moved)
		}
		return gone, s.did(&s.report.Moved, err)
	}
	return f.Expires, nil
}

// sweepUnnamed is sweepObject for an object that the record of its owner and id in this area does
// not name: a move may have left it, or it may belong to an upload.
func (s *Sweeper) sweepUnnamed(
	ctx context.Context, area blob.Area, o blob.Object, oldAt time.Time,
) (next int64, err error) {
	k, _ := parseKey(o.Key)
	now, err := s.current(ctx, k.owner, k.id)
	if err != nil {
		return stays, err
	}
	if now.names(File{Area: area, Blob: o.Key}) {
		if now.Blob == o.Key { // it has arrived here since
			return s.Now().Add(tryAgain).Unix(), nil
		}
		return gone, s.did(&s.report.Moved, s.bring(ctx, now))
	}
	if !s.Now().After(oldAt) {
		return oldAt.Unix(), nil // its record may be written soon
	}
	keep, err := s.inSession(ctx, o.Key)
	why, of := "", owner{}
	if err == nil && !keep {
		why, of, err = s.needed(ctx, now, o.Key)
	}
	if why != "" {
		s.Log.Error("an object that no record names is kept",
			"area", area, "key", o.Key, "why", why)
	}
	if err != nil || keep || why != "" || !s.mayRemove(of) {
		return s.Now().Add(tryAgain).Unix(), err
	}
	return gone, s.did(&s.report.Orphans, s.Blobs.SetAside(ctx, area, o.Key, s.Now()))
}

// needed returns why an object that no record names may still be needed, or "", and the object's
// owner. f is the record with that owner and id, if there is one.
func (s *Sweeper) needed(
	ctx context.Context,
	f File,
	key string,
) (why string, of owner, err error) {
	name, id, _ := ParseBlobKey(key)
	of, err = s.owner(ctx, name)
	switch {
	case err != nil:
	case of.lost:
		why = "its user is lost, but was not removed"
	case !of.removed && id > of.LastFile:
		why = "it is newer than the table: was an older table restored?"
	case f.ID != 0:
		written, failed := s.measure(ctx, f, true, nil)
		if failed != nil && s.Blobs.Local() && ctx.Err() == nil {
			failed = blob.ErrNotFound // the medium cannot read them
		}
		if errors.Is(failed, blob.ErrNotFound) || written.Size != f.Length {
			why = "its record has lost its bytes: run ferry check --repair"
		}
		err = fault.Wrap(failed, "looking for the bytes of a record", blob.ErrNotFound)
	}
	return why, of, err
}

// mostRemoved is the most leftovers that a run removes, not counting those of removed users. More
// leftovers suggest that an older table was restored.
const mostRemoved = 100

// mayRemove reports whether the run may remove a leftover, and counts it.
func (s *Sweeper) mayRemove(of owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.removed {
		return true
	}
	if s.leftovers == mostRemoved {
		s.report.Kept++
		return false
	}
	s.leftovers++
	return true
}

// did counts what was done, unless there was an error.
func (s *Sweeper) did(n *int, err error) error {
	if err == nil {
		s.count(n)
	}
	return err
}

func (s *Sweeper) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// owner is what the table knows about a name. A user who is missing but was not removed, or who
// cannot be read, is lost.
type owner struct {
	users.User
	removed, lost bool
}

func (s *Service) ownerOf(ctx context.Context, name string) (owner, error) {
	u, listed, err := s.Users.Trace(ctx, name)
	unknown := errors.Is(err, users.ErrUnknown)
	o := owner{u, unknown && listed, unknown && !listed || errors.Is(err, users.ErrDamaged)}
	if o.removed || o.lost {
		err = nil
	}
	return o, err
}

func (s *Sweeper) owner(ctx context.Context, name string) (owner, error) {
	// Concurrent checks of the same owner read it once.
	found, err, _ := s.reading.Do(name, func() (any, error) {
		if known, ok := s.owners.Load(name); ok {
			return known, nil
		}
		o, err := s.ownerOf(ctx, name)
		if err == nil {
			s.owners.Store(name, o)
		}
		if err == nil && o.lost && !s.quiet {
			s.Log.Error(
				"a user is lost, but was not removed; their files stay as they are: see ferry check", "user", name,
			)
		}
		return o, err
	})
	return found.(owner), err
}
