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

// Delete moves a file from its owner's user area to the backup area and
// returns it as it is there. Unknown ids are NotFound.
func (s *Service) Delete(ctx context.Context, owner auth.User, id int64) (File, error) {
	return s.relocate(ctx, owner, id, blob.Files, blob.Backup, Event{What: Deleted, Reason: ByUser})
}

// Restore moves a file from the backup area back to the user area.
func (s *Service) Restore(ctx context.Context, owner auth.User, id int64) (File, error) {
	return s.relocate(ctx, owner, id, blob.Backup, blob.Files, Event{What: Restored})
}

func (s *Service) relocate(ctx context.Context, owner auth.User, id int64, from, to blob.Area, e Event) (File, error) {
	f, err := s.Get(ctx, owner, from, id)
	if err != nil {
		return File{}, err
	}
	return s.move(ctx, owner, f, to, e)
}

// Retire moves a file whose time in the user area is over to the backup area.
// One that was changed since f was read is a NotFound fault.
func (s *Service) Retire(ctx context.Context, owner auth.User, f File) (File, error) {
	return s.move(ctx, owner, f, blob.Backup, Event{What: Deleted, Reason: ByRetention})
}

// Get returns a file of its owner's, in this area. One call to the table.
// Unknown ids are NotFound.
func (s *Service) Get(ctx context.Context, owner auth.User, area blob.Area, id int64) (File, error) {
	f, err := s.get(ctx, area, owner.Name, id)
	if err == nil && (f.Expired(s.Now()) || f.Incarnation != owner.Incarnation) {
		return File{}, errNoFile(area)
	}
	return f, err
}

// Sent returns a file in the user area of owner, a canonical name, that the
// uploader has sent there. One call to the table. Files of others are NotFound.
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
	if area == blob.Backup {
		return envelope.NewFault(envelope.NotFound, "no file of that id in the backup area")
	}
	return envelope.NewFault(envelope.NotFound, "no file of that id in the user area")
}

// move puts a file into the other area. The bytes are copied under a key of
// their own first, then one transaction moves record and links, then the old
// bytes go. So at each moment there are bytes for the record that counts, and a
// move back that comes in between loses nothing. A file that was changed since
// f was read is a NotFound fault. event tells what has become of it.
func (s *Service) move(ctx context.Context, owner auth.User, f File, to blob.Area, event Event) (File, error) {
	moved := f
	moved.Area, moved.Expires = to, s.expiry(to, owner)
	var err error
	if moved.Blob, err = s.blobKey(f.Owner, f.ID); err != nil {
		return File{}, err
	}
	switch err := s.Blobs.Copy(ctx, f.Area, f.Blob, to, moved.Blob); {
	case errors.Is(err, blob.ErrNotFound):
		return File{}, s.gone(ctx, f)
	case err != nil:
		return File{}, fmt.Errorf("copying a file: %w", err)
	}
	before, err := s.linksOf(ctx, f)
	if err != nil {
		s.discard(ctx, to, moved.Blob)
		return File{}, err
	}
	event.File = moved
	told, err := s.Outbox.Event(ctx, event)
	if err == nil {
		err = s.Table.Write(ctx, slices.Concat(s.unlink(f), s.publish(moved, before), told)...)
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
	s.discard(ctx, f.Area, f.Blob)
	return moved, nil
}

// gone tells a file that was moved a moment ago from one whose bytes are lost.
func (s *Service) gone(ctx context.Context, f File) error {
	now, err := s.get(ctx, f.Area, f.Owner, f.ID)
	if err == nil && now.Blob == f.Blob {
		return fmt.Errorf("the bytes of file %d of %s are missing from the %s area", f.ID, f.Owner, f.Area)
	}
	return errNoFile(f.Area)
}

// Purge removes a file for good: the record first, then the bytes. A file
// that was moved or purged meanwhile is left alone.
func (s *Service) Purge(ctx context.Context, f File) error {
	release, err := s.release(ctx, f)
	if err != nil {
		return err
	}
	gone, err := s.Outbox.Event(ctx, Event{What: Deleted, File: f, Reason: ByPurge})
	if err != nil {
		return err
	}
	err = s.Table.Write(ctx, slices.Concat(s.unlink(f), f.forget(), release, gone)...)
	if err != nil {
		return envelope.Wrap(err, "removing a file's record", table.ErrCondition)
	}
	s.discard(ctx, f.Area, f.Blob)
	return nil
}

// RemoveAll purges all files of a user, who must be disabled, in both areas. It
// ends reservations first, so that a later user of the name is charged for none.
func (s *Service) RemoveAll(ctx context.Context, owner string) (removed int, err error) {
	if err := s.endReservations(ctx, owner, math.MaxInt64); err != nil {
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
			if err := s.Purge(ctx, f); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
