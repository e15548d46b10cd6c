package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Delete moves a file from its owner's user area to the backup area, and returns
// its new record. If the id is unknown, the fault is NotFound.
func (s *Service) Delete(ctx context.Context, owner users.User, id int64) (*Listed, error) {
	return s.moveByID(ctx, owner, id, blob.Files, blob.Backup, Event{
		What:   Deleted,
		Reason: ByUser,
	})
}

// Restore moves a file back from the backup area to the user area.
func (s *Service) Restore(ctx context.Context, owner users.User, id int64) (*Listed, error) {
	return s.moveByID(ctx, owner, id, blob.Backup, blob.Files, Event{What: Restored})
}

func (s *Service) moveByID(
	ctx context.Context,
	owner users.User,
	id int64,
	from, to blob.Area,
	e Event,
) (*Listed, error) {
	f, err := s.Get(ctx, owner, from, id)
	if err == nil {
		f, err = s.move(ctx, owner, f, to, e)
	}
	if err != nil {
		return nil, err
	}
	move := s.bring
	if s.Mover != nil {
		move = func(ctx context.Context, f File) error { return s.Mover(ctx, s, f.Owner, f.ID) }
	}
	if err := s.orLater(ctx, f, move); err != nil { // the next sweep will finish it
		s.Log.WarnContext(ctx, "the bytes of a moved file are still where they were",
			"owner", f.Owner, "id", f.ID, "area", f.Area, "from", f.From, "error", err)
	}
	return s.listed(f), nil
}

// MoveBytes is what a Mover calls: it moves the bytes of a file to where its record is. If
// that fails, the next sweep tries again.
func (s *Service) MoveBytes(ctx context.Context, owner string, id int64) error {
	reading, cancel := cleaning(ctx)
	defer cancel() // reads even if the mover has ended, so that the sweep can take over
	f, err := s.current(reading, owner, id)
	if err != nil || len(f.From) == 0 {
		return err
	}
	return s.orLater(ctx, f, s.bring)
}

// orLater moves the bytes of a file. If that fails, it makes the next sweep look at their old
// place, whatever day is in the key there. It does so even if the request has ended.
func (s *Service) orLater(
	ctx context.Context,
	f File,
	move func(context.Context, File) error,
) error {
	err := move(ctx, f)
	if err == nil {
		return nil
	}
	ctx, cancel := cleaning(ctx)
	defer cancel()
	at, now := f.places()[1], s.Now()
	return errors.Join(err, s.Table.Write(ctx, due(dayOf(now.Unix()), at.Area, blob.Object{
		Key:      at.Blob,
		Modified: now,
	})))
}

// Get returns one of the owner's files in this area. It makes one call to the
// table. If the id is unknown, the fault is NotFound.
func (s *Service) Get(
	ctx context.Context,
	owner users.User,
	area blob.Area,
	id int64,
) (File, error) {
	f, err := s.get(ctx, area, owner.Name, id)
	if err == nil && (f.Expired(s.Now()) || f.Incarnation != owner.Incarnation) {
		return File{}, errNoFile(area)
	}
	return f, err
}

// Sent returns a file that the caller has sent to the user area of owner, a
// canonical name. It makes one call to the table. If someone else has sent the
// file, the fault is NotFound.
func (s *Service) Sent(ctx context.Context, by By, owner string, id int64) (File, error) {
	f, err := s.get(ctx, blob.Files, owner, id)
	if fault.Is(err, fault.NotFound) || err == nil && (f.Expired(s.Now()) || f.By != by) {
		return File{}, fault.New(
			fault.NotFound, "you have sent no file with that id to that user",
		)
	}
	return f, err
}

func (s *Service) get(
	ctx context.Context,
	area blob.Area,
	owner string,
	id int64,
) (File, error) {
	var f File
	err := s.Table.Get(ctx, Key(area, owner, id), &f)
	if errors.Is(err, table.ErrNotFound) {
		return File{}, errNoFile(area)
	}
	return f.Completed(), fault.Wrap(err, "reading a file's record")
}

func errNoFile(area blob.Area) error {
	name := map[blob.Area]string{blob.Files: "user", blob.Backup: "backup"}[area]
	return fault.New(fault.NotFound, "no file with that id in the %s area", name)
}

// publish returns the operation that, with those of its links, makes a file visible.
func (f File) publish() []table.Op { return []table.Op{f.put().If(table.NotExists())} }

// unpublish returns the operation that, with those of its links, makes a file invisible. It is
// refused if the file has changed since it was read.
func (f File) unpublish() []table.Op {
	return []table.Op{table.Delete(f.key()).If(f.Unchanged()...)}
}

// Unchanged returns the conditions that a file's record still names the same bytes, that its
// links have the same version of their key, and that nothing else in the record was changed in
// place.
func (f File) Unchanged() []table.Cond {
	return []table.Cond{
		table.Equal("blob", f.Blob), table.AtMost("key", max(1, f.Key)),
		table.AtMost("changes", f.Changes),
	}
}

// move puts a file into the other area, and records the event: one transaction moves the
// record and the links. The record says where the bytes still lie; bring moves them. If
// the file was moved or removed since f was read, the fault is NotFound.
func (s *Service) move(
	ctx context.Context, owner users.User, f File, to blob.Area, event Event,
) (moved File, err error) {
	err = s.Retry(ctx, f, func(f File) (err error) {
		moved = f
		if event.Reason == ByRetention && !f.Expired(s.Now()) {
			return errExtended
		}
		moved, err = s.tryMove(ctx, owner, f, to, event)
		return err
	})
	return moved, fault.Wrap(err, "moving a file's record")
}

// errExtended is returned if a file that had expired got more time meanwhile.
var errExtended = errors.New("the file has not expired any more")

// changeTries bounds how often a file that keeps changing is read again.
const changeTries = 5

// Retry calls change with a file. If something else, such as a renewal of links, has changed the
// file in place meanwhile, Retry calls change again with the file as it is now. If the file was
// moved or removed, the fault is NotFound.
func (s *Service) Retry(ctx context.Context, f File, change func(File) error) error {
	for range changeTries {
		err := change(f)
		if !errors.Is(err, table.ErrCondition) {
			return err
		}
		now, failed := s.current(ctx, f.Owner, f.ID)
		if failed != nil {
			return failed
		}
		if now.Blob != f.Blob {
			return errNoFile(f.Area)
		}
		f = now
	}
	return fmt.Errorf("a file that changes all the time: %w", table.ErrBusy)
}

func (s *Service) tryMove(
	ctx context.Context,
	owner users.User,
	f File,
	to blob.Area,
	event Event,
) (File, error) {
	if len(f.From) >= maxFrom {
		return File{}, &fault.Fault{
			Kind:   fault.Unavailable,
			Detail: "the file is still being moved; try again later",
			After:  time.Minute,
		}
	}
	moved := f
	moved.Area, moved.Expires = to, s.expiry(s.Now(), to, owner)
	moved.From, moved.Moved = append([]string{f.place()}, f.From...), s.Now().Unix()
	var err error
	if moved.Blob, err = s.blobKey(f.Owner, f.ID, moved.Expires); err != nil {
		return File{}, err
	}
	links, err := s.Links.Replace(ctx, f, &moved)
	if err != nil {
		return File{}, err
	}
	event.File = moved
	reported, err := s.Outbox.Event(ctx, event)
	if err == nil {
		err = s.Table.Write(ctx, slices.Concat(
			f.unpublish(),
			moved.publish(),
			links,
			reported,
		)...)
	}
	return moved, err
}

// maxFrom bounds the places where a file's bytes may still be: each move that begins before the
// last one is finished adds one.
const maxFrom = 8

// place is where the record says that the bytes are.
func (f File) place() string { return string(f.Area) + "/" + f.Blob }

// places returns the file at each place where its bytes may be, in the order to look: a move
// puts them at the first before it removes them from the others.
func (f File) places() []File {
	all := []File{f}
	for _, from := range f.From {
		at := f
		area, key, _ := strings.Cut(from, "/")
		at.Area, at.Blob = blob.Area(area), key
		all = append(all, at)
	}
	if len(f.From) > 0 {
		all = append(all, f)
	}
	return all
}

// tryEach calls do with each place until it finds the bytes at one.
func tryEach(places []File, do func(at File) error) (err error) {
	for _, at := range places {
		if err = do(at); !errors.Is(err, blob.ErrNotFound) {
			break
		}
	}
	return err
}

// Find calls do with each place where the bytes of a file may be, until do returns anything other
// than blob.ErrNotFound. If it never does, and reread shows that the file was moved meanwhile,
// Find continues with the new places. If reread is nil, it looks only once.
func (f File) Find(do func(at File) error, reread func() (File, error)) error {
	for range changeTries {
		err := tryEach(f.places(), do)
		if !errors.Is(err, blob.ErrNotFound) || reread == nil {
			return err
		}
		now, failed := reread()
		if failed != nil || now.Blob == f.Blob {
			return cmp.Or(failed, err)
		}
		f = now
	}
	return fmt.Errorf("a file that moves all the time: %w", table.ErrBusy)
}

// measure is blob.Measure of a file's bytes, wherever they are.
func (s *Service) measure(
	ctx context.Context,
	f File,
	sizeOnly bool,
	read func(int64),
) (w blob.Written, err error) {
	err = f.Find(func(at File) error {
		w, err = blob.Measure(ctx, s.Blobs, at.Area, at.Blob, sizeOnly, read)
		return err
	}, nil)
	return w, err
}

// names reports whether a record names these bytes.
func (f File) names(at File) bool {
	return f.place() == at.place() || slices.Contains(f.From, at.place())
}

// bring moves the bytes of a file to the place that its record names, if they are not there yet.
// It may be repeated, and several may run at once: a record always names a place where all bytes
// are. If the file was moved again or removed meanwhile, bring removes the bytes that nobody
// needs.
func (s *Service) bring(ctx context.Context, f File) error {
	if len(f.From) == 0 {
		return nil
	}
	err := tryEach(f.places()[1:], func(at File) error {
		if at.place() != f.place() {
			return s.Blobs.Copy(ctx, at.Area, at.Blob, f.Area, f.Blob)
		}
		_, err := blob.Measure(ctx, s.Blobs, f.Area, f.Blob, true, nil)
		return err // nil if another mover was faster
	})
	if err == nil {
		done := table.Update(f.key()).Set("from", []string{}).If(table.Equal("blob", f.Blob))
		err = s.Table.Write(ctx, done)
	}
	if errors.Is(err, table.ErrCondition) || errors.Is(err, blob.ErrNotFound) {
		return s.overtakenMove(ctx, f)
	}
	if err != nil {
		return fmt.Errorf("moving the bytes of a file: %w", err)
	}
	s.discard(ctx, f.places()[1:len(f.From)+1]...)
	return nil
}

// overtakenMove removes the bytes that f names but its current record no longer does. Bytes that
// the record names are left to their own mover.
func (s *Service) overtakenMove(ctx context.Context, f File) error {
	now, err := s.current(ctx, f.Owner, f.ID)
	if err != nil {
		return err
	}
	if now.Blob == f.Blob && len(now.From) > 0 {
		s.Log.ErrorContext(ctx, "a file was moved without its bytes, which are missing",
			"owner", f.Owner, "id", f.ID, "area", f.Area, "key", f.Blob, "from", f.From)
		return nil
	}
	s.discard(ctx, slices.DeleteFunc(f.places(), now.names)...)
	return nil
}

// Rekey gives a file's record and links a new key for the bytes, in one write. Either this begins
// a move from the places in from, each AREA/KEY, or store first puts the bytes under the new key.
// If the file has changed since f was read, the error is table.ErrCondition, and the bytes that
// were stored are removed. An unreadable record is replaced by f.
func (s *Service) Rekey(
	ctx context.Context,
	f File,
	from []string,
	store func(File) error,
) (File, error) {
	now := f
	now.From, now.Moved = from, s.Now().Unix()
	var err error
	if now.Blob, err = s.blobKey(f.Owner, f.ID, f.Expires); err == nil && store != nil {
		err = store(now)
	}
	if err != nil {
		return File{}, err
	}
	links, err := s.Links.Replace(ctx, f, &now)
	var item table.Item
	if err == nil {
		err = fault.Wrap(
			s.Table.Get(ctx, f.key(), &item),
			"reading a file's record",
			table.ErrNotFound,
		)
	}
	if err == nil {
		record := now.put().If(f.Unchanged()...)
		if _, damaged := DecodeFile(item); errors.Is(damaged, table.ErrUnreadable) {
			record = now.put().If(table.Exists()) // a condition that does not read the record
		}
		err = s.Table.Write(ctx, slices.Concat([]table.Op{record}, links, s.missed(now))...)
	}
	if store != nil && refused(err) {
		s.discard(ctx, now)
	}
	return now, fault.Wrap(err, "giving a file's bytes a new key")
}

// current returns the record of a file in either area, or the zero File if there is none. It
// looks twice, as the file may move while the areas are read.
func (s *Service) current(ctx context.Context, owner string, id int64) (f File, err error) {
	for range 2 {
		items, err := s.Table.GetMany(
			ctx,
			Key(blob.Files, owner, id),
			Key(blob.Backup, owner, id),
		)
		if err != nil {
			return f, fmt.Errorf("reading a file's record: %w", err)
		}
		for _, item := range items {
			if f, err = DecodeFile(item); !errors.Is(err, table.ErrNotFound) {
				return f, err
			}
		}
	}
	return f, nil
}

// Purge removes one of the owner's files from the backup area for good, and frees its room.
// Repeating it is no error. If the file is in the user area, or the id was never given out, the
// fault is NotFound. It makes three calls to the table and one to the store, or just one to the
// table if there is nothing to purge.
func (s *Service) Purge(ctx context.Context, owner users.User, id int64) error {
	for range changeTries {
		found, err := s.Table.GetMany(
			ctx,
			Key(blob.Backup, owner.Name, id),
			Key(blob.Files, owner.Name, id),
		)
		if err != nil {
			return fmt.Errorf("reading a file's record: %w", err)
		}
		var f File
		switch err := found[0].Decode(&f); {
		case errors.Is(err, table.ErrNotFound) && (found[1].Found() || id > owner.LastFile),
			err == nil && f.Incarnation != owner.Incarnation:
			return errNoFile(blob.Backup)
		case errors.Is(err, table.ErrNotFound):
			return nil // it was purged before
		case err != nil:
			return fmt.Errorf("reading a file's record: %w", err)
		}
		if err := s.remove(ctx, f.Completed()); !errors.Is(err, table.ErrCondition) {
			return err
		}
	}
	return fmt.Errorf("purging a file that changes all the time: %w", table.ErrBusy)
}

// purge is remove, but it is no error if the file was moved or purged meanwhile.
func (s *Service) purge(ctx context.Context, f File) error {
	err := s.Retry(ctx, f, func(f File) error { return s.remove(ctx, f) })
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return fault.Wrap(err, "purging a file")
}

// remove removes a file for good: first the record, then the bytes. If the file
// has changed since it was read, it does nothing, and the error is
// table.ErrCondition.
func (s *Service) remove(ctx context.Context, f File) error {
	freed, err := s.freeRoom(ctx, f)
	if err != nil {
		return err
	}
	reported, err := s.Outbox.Event(ctx, Event{What: Deleted, File: f, Reason: ByPurge})
	if err != nil {
		return err
	}
	err = s.Table.Write(ctx, slices.Concat(
		f.unpublish(),
		s.Links.Remove(f),
		freed,
		reported,
	)...)
	if err != nil {
		return fmt.Errorf("removing a file's record: %w", err)
	}
	s.discard(ctx, f.places()[:len(f.From)+1]...)
	return nil
}

// RemoveAll purges all files of a user, who must be disabled, in both areas. It first ends the
// user's requests and reservations, because a later user of the same name would be charged for
// the reservations.
func (s *Service) RemoveAll(ctx context.Context, owner string) (removed int, err error) {
	if _, err := s.endReservations(ctx, owner, math.MaxInt64); err != nil {
		return 0, err
	}
	if err := s.Links.RemoveRequests(ctx, owner); err != nil {
		return 0, err
	}
	for _, area := range []blob.Area{blob.Files, blob.Backup, blob.Files} { // a request may still restore a file
		for item, err := range table.Each(ctx, s.Table, table.Query{PK: partition(area, owner), Limit: PageSize}) {
			if err != nil {
				return removed, fmt.Errorf("listing files: %w", err)
			}
			var f File
			if err = item.Decode(&f); err == nil {
				err = s.purge(ctx, f.Completed())
			} else { // a sweep removes the bytes, as nothing names them
				s.unreadable(ctx, item.Key, err)
				err = s.Table.Write(ctx, table.Delete(item.Key))
			}
			if err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
