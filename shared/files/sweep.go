package files

import (
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
	Failed   int  // objects that could not be dealt with; the log says why
	Complete bool // the walk reached its end
}

// Sweeper moves on or removes what has expired, and removes the bytes that have no
// record. It walks the objects of the store, and so needs no index of its own; see
// the page of package table for what a walk costs. Two sweeps at once do no harm,
// only double work.
type Sweeper struct {
	*Service
	Log *slog.Logger
	// Grace is how old an object without a record must be before it is removed.
	// It must exceed the longest time between the moment from which the store
	// counts an object's age (on S3 the start of its upload) and the writing of
	// its record.
	Grace time.Duration
	// Reserve is how long before the context's deadline a run stops. The next
	// run resumes there.
	Reserve time.Duration

	owners map[string]auth.User // seen in this run; a zero one is missing
}

// Run walks both areas, from where the last run stopped if it did not finish.
// Trouble with one object does not stop it.
func (s *Sweeper) Run(ctx context.Context) (SweepReport, error) {
	var r SweepReport
	s.owners = map[string]auth.User{}
	// The backup area comes first, so that files which this run moves there
	// rest; but an area that was left half done comes before it.
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
	if err := s.leftovers(ctx); err != nil {
		return r, err
	}
	r.Complete = true
	return r, nil
}

// leftovers removes what no object shows: halves of uploads and reservations.
func (s *Sweeper) leftovers(ctx context.Context) error {
	if _, err := s.Blobs.Sweep(ctx, s.Now().Add(-s.Grace)); err != nil {
		return fmt.Errorf("removing unfinished objects: %w", err)
	}
	return auth.NewUsers(s.Table, s.Now).List(ctx, func(u auth.User) error {
		if u.Quota == 0 {
			return nil
		}
		return s.endReservations(ctx, u.Name, s.Now().Unix())
	})
}

// sweepPosition is where a run that ran out of time stopped.
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
			inTime, err := s.page(ctx, area, chunk, &at, r)
			if err != nil {
				return false, err
			}
			if !inTime {
				return false, s.keep(ctx, area, at)
			}
		}
		if len(objects) < blob.MaxList {
			return true, s.Table.Write(ctx, table.Delete(positionKey(area)))
		}
		if err := s.keep(ctx, area, at); err != nil {
			return false, err
		}
	}
}

func (s *Sweeper) keep(ctx context.Context, area blob.Area, at sweepPosition) error {
	return envelope.Wrap(s.Table.Write(ctx, table.Put(positionKey(area), at)), "storing the sweep's position")
}

func (s *Sweeper) outOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < s.Reserve
}

// page deals with some objects: one call to the table for their records, and
// more only for what must change. It moves at to the last object that it has
// dealt with; a move may take long, so that time may be up before each.
func (s *Sweeper) page(ctx context.Context, area blob.Area, objects []blob.Object, at *sweepPosition, r *SweepReport) (inTime bool, err error) {
	items, err := s.records(ctx, area, objects)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		if s.outOfTime(ctx) {
			return false, nil
		}
		r.Seen++
		at.After = o.Key
		item, ours := items[o.Key]
		if !ours { // an operator's, who may remove it
			s.Log.Warn("an object has a key that Ferry does not make", "area", area, "key", o.Key)
			continue
		}
		if err := s.object(ctx, area, o, item, r); err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			r.Failed++
			s.Log.Error("an object could not be swept", "area", area, "key", o.Key, "error", err)
		}
	}
	return true, nil
}

// records returns, for each object whose key is one of Ferry's, the item that
// its record would be.
func (s *Sweeper) records(ctx context.Context, area blob.Area, objects []blob.Object) (map[string]table.Item, error) {
	var known []string
	var keys []table.Key
	for _, o := range objects {
		if owner, id, ok := ParseBlobKey(o.Key); ok {
			known, keys = append(known, o.Key), append(keys, Key(area, owner, id))
		}
	}
	items := map[string]table.Item{}
	if len(keys) == 0 {
		return items, nil
	}
	found, err := s.Table.GetMany(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	for i, item := range found {
		items[known[i]] = item
	}
	return items, nil
}

func (s *Sweeper) object(ctx context.Context, area blob.Area, o blob.Object, item table.Item, r *SweepReport) error {
	var f File
	if err := item.Decode(&f); err != nil && !errors.Is(err, table.ErrNotFound) {
		return fmt.Errorf("reading a record: %w", err)
	}
	old := s.Now().Sub(o.Modified) > s.Grace
	if f.Blob != o.Key {
		if !old {
			return nil // its record may be about to come
		}
		if waits, err := s.Awaits(ctx, o.Key); err != nil || waits {
			return err
		}
		if newer, err := s.newer(ctx, area, o.Key); err != nil || newer {
			return err
		}
		return countDone(&r.Orphans, s.Blobs.Delete(ctx, area, o.Key))
	}
	owner, err := s.owner(ctx, f.Owner)
	// A user who was added during this run may be known by an earlier user
	// of the name; then the file is of the later incarnation, and stays.
	gone := owner.Name == "" || owner.Incarnation > f.Incarnation
	switch {
	case err != nil:
		return err
	case gone && old, f.Expired(s.Now()) && area == blob.Backup:
		return countDone(&r.Purged, s.Purge(ctx, f))
	case !gone && f.Expired(s.Now()):
		_, err := s.Retire(ctx, owner, f)
		if envelope.IsFault(err, envelope.NotFound) {
			return nil // its owner was quicker
		}
		return countDone(&r.Moved, err)
	}
	return nil
}

// newer reports whether an object is of a file whose id was not given out yet,
// as after an older table was put back: it is not for a sweep to remove it.
func (s *Sweeper) newer(ctx context.Context, area blob.Area, key string) (bool, error) {
	name, id, _ := ParseBlobKey(key)
	owner, err := s.owner(ctx, name)
	if err != nil || owner.Name == "" || id <= owner.LastFile {
		return false, err
	}
	s.Log.Warn("an object is of a file that the table does not know of yet; was an older table put back? it is kept", "area", area, "key", key)
	return true, nil
}

// countDone adds what was done without an error.
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
	u, err := auth.NewUsers(s.Table, s.Now).Get(ctx, name)
	if err != nil && !errors.Is(err, auth.ErrUnknownUser) {
		return auth.User{}, err
	}
	s.owners[name] = u
	return u, nil
}
