package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// SweepReport counts what a run did.
type SweepReport struct {
	Seen     int  // objects looked at
	Moved    int  // files moved to the backup area
	Purged   int  // files removed for good
	Orphans  int  // objects without a record removed
	Failed   int  // objects that failed; the log says why
	Complete bool // the run reached the end
}

// Sweeper moves expired files to the backup area or removes them, and removes
// bytes that have no record. It walks the objects of the store, so it needs no
// index; the README of package table says what a walk costs. Two sweeps at once
// do no harm, only double work.
type Sweeper struct {
	*Service
	Log *slog.Logger
	// Grace is how old an object without a record must be before it is removed.
	// It must be longer than any upload takes to write its record. S3 counts an
	// object's age from the start of its upload.
	Grace time.Duration
	// Reserve is how long before the context's deadline a run stops. The next
	// run resumes there.
	Reserve time.Duration

	owners map[string]auth.User // those read in this run; zero if there is no such user
}

// Run walks both areas. If the last run did not finish, it resumes there. One
// failed object does not stop the run.
func (s *Sweeper) Run(ctx context.Context) (SweepReport, error) {
	var r SweepReport
	s.owners = map[string]auth.User{}
	// The backup area comes first, so that this run does not walk the files that
	// it moves there. But if the last run stopped in the user area, resume there.
	areas := []blob.Area{blob.Backup, blob.Files}
	if at, err := s.position(ctx, blob.Files); err != nil {
		return r, err
	} else if at.After != "" {
		areas = []blob.Area{blob.Files, blob.Backup}
	}
	for _, area := range areas {
		if done, err := s.walk(ctx, area, &r); err != nil || !done {
			return r, err
		}
	}
	err := s.removeLeftovers(ctx, &r)
	r.Complete = err == nil
	return r, err
}

// removeLeftovers removes what the walk does not show: unfinished objects and, of users
// with a quota, expired reservations and files whose bytes are lost.
func (s *Sweeper) removeLeftovers(ctx context.Context, r *SweepReport) error {
	if _, err := s.Blobs.Sweep(ctx, s.Now().Add(-s.Grace), nil); err != nil {
		return fmt.Errorf("removing unfinished objects: %w", err)
	}
	return auth.NewUsers(s.Table, s.Now).List(ctx, func(u auth.User) error {
		if u.Quota == 0 {
			return nil
		}
		_, err := s.endReservations(ctx, u.Name, s.Now().Unix())
		return cmp.Or(err, s.sweepOldest(ctx, blob.Backup, u, r), s.sweepOldest(ctx, blob.Files, u, r))
	})
}

// sweepOldest sweeps the expired files among a user's oldest in an area, whether or not
// there are bytes. Each file is among the oldest in the end, as those before it expire.
func (s *Sweeper) sweepOldest(ctx context.Context, area blob.Area, u auth.User, r *SweepReport) error {
	found, err := s.Table.Query(ctx, table.Query{PK: partition(area, u.Name), Limit: table.MaxKeys})
	var expired []blob.Object
	for _, item := range found.Items {
		var f File
		if item.Decode(&f) == nil && f.Expired(s.Now()) {
			expired = append(expired, blob.Object{Key: f.Blob, Modified: s.Now()})
		}
	}
	if len(expired) > 0 {
		_, err = s.sweepObjects(ctx, area, expired, &sweepPosition{}, r)
	}
	return envelope.Wrap(err, "sweeping the oldest files of a user")
}

// sweepPosition is stored when a run stops before the end of an area.
type sweepPosition struct {
	After string `json:"after"`
}

func positionKey(area blob.Area) table.Key { return table.Key{PK: "sweep", SK: string(area)} }

func (s *Sweeper) position(ctx context.Context, area blob.Area) (at sweepPosition, err error) {
	err = s.Table.Get(ctx, positionKey(area), &at)
	return at, envelope.Wrap(err, "reading the sweep's position", table.ErrNotFound)
}

func (s *Sweeper) walk(ctx context.Context, area blob.Area, r *SweepReport) (done bool, err error) {
	at, err := s.position(ctx, area)
	if err != nil {
		return false, err
	}
	for {
		objects, err := s.Blobs.List(ctx, area, at.After, blob.MaxList)
		if err != nil {
			return false, fmt.Errorf("listing the %s area: %w", area, err)
		}
		for chunk := range slices.Chunk(objects, table.MaxKeys) {
			inTime, err := s.sweepObjects(ctx, area, chunk, &at, r)
			if err != nil {
				return false, err
			}
			if !inTime {
				return false, s.savePosition(ctx, area, at)
			}
		}
		if len(objects) < blob.MaxList {
			return true, s.Table.Write(ctx, table.Delete(positionKey(area)))
		}
		if err := s.savePosition(ctx, area, at); err != nil {
			return false, err
		}
	}
}

func (s *Sweeper) savePosition(ctx context.Context, area blob.Area, at sweepPosition) error {
	return envelope.Wrap(s.Table.Write(ctx, table.Put(positionKey(area), at)), "storing the sweep's position")
}

// sweepObjects sweeps some objects, with one call to the table for their records
// and more only for what must change. It sets at to the last object that it has
// swept. It checks the time before each object, as moving a file may take long.
func (s *Sweeper) sweepObjects(
	ctx context.Context, area blob.Area, objects []blob.Object, at *sweepPosition, r *SweepReport,
) (inTime bool, err error) {
	items, err := s.recordsOf(ctx, area, objects)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.Reserve {
			return false, nil
		}
		r.Seen++
		at.After = o.Key
		item, ours := items[o.Key]
		if !ours { // an operator put it there, so leave it
			s.Log.Warn("an object has a key that Ferry does not make", "area", area, "key", o.Key)
			continue
		}
		if err := s.sweepObject(ctx, area, o, item, r); err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			r.Failed++
			s.Log.Error("an object could not be swept", "area", area, "key", o.Key, "error", err)
		}
	}
	return true, nil
}

// recordsOf returns the item of the record for each object whose key Ferry made.
// An object without a record has an item that is not found.
func (s *Sweeper) recordsOf(ctx context.Context, area blob.Area, objects []blob.Object) (map[string]table.Item, error) {
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

func (s *Sweeper) sweepObject(ctx context.Context, area blob.Area, o blob.Object, item table.Item, r *SweepReport) error {
	var f File
	if err := item.Decode(&f); err != nil && !errors.Is(err, table.ErrNotFound) {
		return fmt.Errorf("reading a record: %w", err)
	}
	old := s.Now().Sub(o.Modified) > s.Grace
	if f.Blob != o.Key {
		if !old {
			return nil // its record may be written soon
		}
		if open, err := s.inSession(ctx, o.Key); err != nil || open {
			return err
		}
		if unknown, err := s.newerThanTable(ctx, area, o.Key); err != nil || unknown {
			return err
		}
		return countDone(&r.Orphans, s.Blobs.Delete(ctx, area, o.Key))
	}
	owner, err := s.owner(ctx, f.Owner)
	// The owner may have been read before a later user of the name was added.
	// Then the file has the later incarnation, and stays.
	ownerGone := owner.Name == "" || owner.Incarnation > f.Incarnation
	switch {
	case err != nil:
		return err
	case ownerGone && old, f.Expired(s.Now()) && area == blob.Backup:
		return countDone(&r.Purged, s.purge(ctx, f))
	case !ownerGone && f.Expired(s.Now()):
		_, err := s.move(ctx, owner, f, blob.Backup, Event{What: Deleted, Reason: ByRetention})
		if envelope.IsFault(err, envelope.NotFound) {
			return nil // its owner moved it first
		}
		return countDone(&r.Moved, err)
	}
	return nil
}

// newerThanTable reports whether an object has an id that the table has not given
// out yet. That happens after an older table was restored, and then the object
// must be kept.
func (s *Sweeper) newerThanTable(ctx context.Context, area blob.Area, key string) (bool, error) {
	name, id, _ := ParseBlobKey(key)
	owner, err := s.owner(ctx, name)
	if err != nil || owner.Name == "" || id <= owner.LastFile {
		return false, err
	}
	s.Log.Warn("an object is newer than the table; was an older table restored? the object is kept", "area", area, "key", key)
	return true, nil
}

// countDone adds 1 to n if there was no error.
func countDone(n *int, err error) error {
	if err == nil {
		*n++
	}
	return err
}

func (s *Sweeper) owner(ctx context.Context, name string) (auth.User, error) {
	if u, ok := s.owners[name]; ok {
		return u, nil
	}
	u, err := s.user(ctx, name)
	if err == nil {
		s.owners[name] = u
	}
	return u, err
}
