package files

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// Delete moves a file from its owner's user area to the backup area, and returns
// its new record. If the id is unknown, the fault is NotFound.
func (s *Service) Delete(ctx context.Context, owner auth.User, id int64) (File, error) {
	return s.moveByID(ctx, owner, id, blob.Files, blob.Backup, Event{What: Deleted, Reason: ByUser})
}

// Restore moves a file back from the backup area to the user area.
func (s *Service) Restore(ctx context.Context, owner auth.User, id int64) (File, error) {
	return s.moveByID(ctx, owner, id, blob.Backup, blob.Files, Event{What: Restored})
}

func (s *Service) moveByID(ctx context.Context, owner auth.User, id int64, from, to blob.Area, e Event) (File, error) {
	f, err := s.Get(ctx, owner, from, id)
	if err != nil {
		return File{}, err
	}
	return s.move(ctx, owner, f, to, e)
}

// Get returns one of the owner's files in this area. It makes one call to the
// table. If the id is unknown, the fault is NotFound.
func (s *Service) Get(ctx context.Context, owner auth.User, area blob.Area, id int64) (File, error) {
	f, err := s.get(ctx, area, owner.Name, id)
	if err == nil && (f.Expired(s.Now()) || f.Incarnation != owner.Incarnation) {
		return File{}, errNoFile(area)
	}
	return f, err
}

// Sent returns a file that the uploader has sent to the user area of owner, a
// canonical name. It makes one call to the table. If someone else has sent the
// file, the fault is NotFound.
func (s *Service) Sent(ctx context.Context, uploader auth.User, owner string, id int64) (File, error) {
	f, err := s.get(ctx, blob.Files, owner, id)
	if envelope.IsFault(err, envelope.NotFound) || err == nil && (f.Expired(s.Now()) || !f.UploadedBy(uploader)) {
		return File{}, envelope.NewFault(envelope.NotFound, "no file of that id that you have sent to that user")
	}
	return f, err
}

func (s *Service) get(ctx context.Context, area blob.Area, owner string, id int64) (File, error) {
	var f File
	err := s.Table.Get(ctx, Key(area, owner, id), &f)
	if errors.Is(err, table.ErrNotFound) {
		return File{}, errNoFile(area)
	}
	return f, envelope.Wrap(err, "reading a file's record")
}

func errNoFile(area blob.Area) error {
	name := map[blob.Area]string{blob.Files: "user", blob.Backup: "backup"}[area]
	return envelope.NewFault(envelope.NotFound, "no file of that id in the %s area", name)
}

// move puts a file into the other area, and records the event. First it copies
// the bytes to a new key, then one transaction moves the record and the links,
// and finally it removes the old bytes. So a record always has its bytes, and a
// concurrent move back loses nothing. If the file has changed since f was read,
// the fault is NotFound. If its bytes are lost, the record moves without them, so
// that it can be purged.
func (s *Service) move(ctx context.Context, owner auth.User, f File, to blob.Area, event Event) (File, error) {
	moved := f
	moved.Area, moved.Expires = to, s.expiry(to, owner)
	var err error
	if moved.Blob, err = s.blobKey(f.Owner, f.ID, moved.Expires); err != nil {
		return File{}, err
	}
	lost := s.Blobs.Copy(ctx, f.Area, f.Blob, to, moved.Blob)
	if lost != nil && !errors.Is(lost, blob.ErrNotFound) {
		return File{}, fmt.Errorf("copying a file: %w", lost)
	}
	links, err := s.Links(ctx, f)
	if err != nil {
		s.discard(ctx, to, moved.Blob)
		return File{}, err
	}
	event.File = moved
	reported, err := s.Outbox.Event(ctx, event)
	if err == nil {
		err = s.Table.Write(ctx, slices.Concat(s.unpublish(f), s.publish(moved, links), reported)...)
	}
	if refused(err) {
		s.discard(ctx, to, moved.Blob)
	}
	if errors.Is(err, table.ErrCondition) {
		return File{}, errNoFile(f.Area)
	}
	if err != nil {
		return File{}, fmt.Errorf("moving a file's record: %w", err)
	}
	if lost != nil {
		s.Log.ErrorContext(ctx, "a file was moved without its bytes, which are missing",
			"owner", f.Owner, "id", f.ID, "area", f.Area, "key", f.Blob)
	}
	s.discard(ctx, f.Area, f.Blob)
	return moved, nil
}

// purgeTries bounds how often Purge looks again for a file that is being moved.
const purgeTries = 5

// Purge removes one of the owner's files from the backup area for good, and
// frees its room. Repeating it is no error. If the file is in the user area, or
// the id was never given out, the fault is NotFound. It makes three calls to the
// table and one to the store, and one if there is nothing to purge.
func (s *Service) Purge(ctx context.Context, owner auth.User, id int64) error {
	for range purgeTries {
		found, err := s.Table.GetMany(ctx, Key(blob.Backup, owner.Name, id), Key(blob.Files, owner.Name, id))
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
		if err := s.remove(ctx, f); !errors.Is(err, table.ErrCondition) {
			return err
		}
	}
	return fmt.Errorf("purging a file that keeps moving: %w", table.ErrBusy)
}

// purge is remove, but if the file was moved or purged meanwhile, that is no
// error.
func (s *Service) purge(ctx context.Context, f File) error {
	return envelope.Wrap(s.remove(ctx, f), "purging a file", table.ErrCondition)
}

// remove removes a file for good: first the record, then the bytes. If the file
// was moved or removed meanwhile, it does nothing, and the error is
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
	err = s.Table.Write(ctx, slices.Concat(s.unpublish(f), f.cancelReceipt(), freed, reported)...)
	if err != nil {
		return fmt.Errorf("removing a file's record: %w", err)
	}
	s.discard(ctx, f.Area, f.Blob)
	return nil
}

// RemoveAll purges all files of a user, who must be disabled, in both areas. It
// first ends the user's reservations, so that a later user of the same name is
// not charged for them.
func (s *Service) RemoveAll(ctx context.Context, owner string) (removed int, err error) {
	if _, err := s.endReservations(ctx, owner, math.MaxInt64); err != nil {
		return 0, err
	}
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		for item, err := range table.Each(ctx, s.Table, table.Query{PK: partition(area, owner), Limit: PageSize}) {
			var f File
			if err == nil {
				err = item.Decode(&f)
			}
			if err != nil {
				return removed, fmt.Errorf("listing files: %w", err)
			}
			if err := s.purge(ctx, f); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
