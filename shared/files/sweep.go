package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

// SweepReport counts what a run did.
type SweepReport struct {
	Seen       int  // objects looked at
	Moved      int  // files moved to the backup area
	Purged     int  // files removed for good
	Orphans    int  // objects without a record that were removed
	Kept       int  // leftovers beyond what one run removes
	Failed     int  // objects, users and items that failed; the log says why
	Unfinished int  // objects that took too long, and resume in the next run
	Complete   bool // the run reached the end, and left nothing for the next
}

// Sweeper moves expired files to the backup area or removes them, and removes bytes that have no
// record. It looks only at what is due; the README of package table says what that costs. Two
// sweeps at once do no harm, only double the work.
type Sweeper struct {
	*Service
	// Grace is how old an object without a record must be before it is removed.
	// It must be longer than any upload takes to write its record. S3 counts an
	// object's age from the start of its upload.
	Grace time.Duration
	// Reserve is how long before the context's deadline a run stops. The next
	// run resumes there.
	Reserve time.Duration
	// AtOnce is how many objects are swept at the same time; 0 is 1.
	AtOnce int

	quiet   bool // a check reports lost users itself
	mu      sync.Mutex
	reading singleflight.Group
	owners  sync.Map // of owner, by name: those read in this run
	report  SweepReport
	// leftovers counts those removed, except those of removed users.
	leftovers int
	group     *errgroup.Group // of the objects that are being swept
	sem       chan struct{}   // one slot for each
}

// sweepState is what a run leaves for the next one.
type sweepState struct {
	V    int64  `json:"v"`
	Day  string `json:"day,omitempty"`  // all that was due before this day is done
	User string `json:"user,omitempty"` // the last user whose reservations were looked at
	Walk int64  `json:"walk,omitempty"` // Unix seconds, when the next walk begins
	// Of a walk under way: its area, and the last key there.
	Area  blob.Area `json:"area,omitempty"`
	After string    `json:"after,omitempty"`
}

func stateKey() table.Key { return table.Key{PK: "sweep", SK: "state"} }

// Run sweeps what is due. If the last run did not finish, it resumes there. One
// failed object does not stop the run.
func (s *Sweeper) Run(ctx context.Context) (SweepReport, error) {
	s.report, s.leftovers = SweepReport{}, 0
	s.owners.Clear()
	var was sweepState
	err := fault.Wrap(
		s.Table.Get(ctx, stateKey(), &was),
		"reading where the sweep is",
		table.ErrNotFound,
	)
	if err != nil {
		return s.report, err
	}
	now, done := was, true
	now.V = table.Format
	group, inner := errgroup.WithContext(ctx)
	s.group, s.sem = group, make(chan struct{}, max(1, s.AtOnce))
	for _, step := range []func(context.Context, *sweepState) (bool, error){s.noted, s.days, s.walk, s.lapsed} {
		if done, err = step(inner, &now); err != nil || !done {
			break
		}
	}
	if failed := group.Wait(); failed != nil {
		return s.report, failed
	}
	if s.report.Kept > 0 {
		s.Log.Error(
			"there are more leftovers than a run removes; was an older table restored? see ferry check",
			"removed",
			s.leftovers,
			"kept",
			s.report.Kept,
		)
	}
	if now != was {
		failed := s.Table.Write(ctx, table.Put(stateKey(), now))
		err = errors.Join(err, fault.Wrap(failed, "storing where the sweep is"))
	}
	if err == nil && done {
		_, err = s.Blobs.Sweep(ctx, s.Now().Add(-s.Grace), nil)
		err = fault.Wrap(err, "removing unfinished objects")
		s.report.Complete = err == nil && s.report.Unfinished == 0
	}
	return s.report, err
}

// inTime reports whether there is time for more.
func (s *Sweeper) inTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= s.Reserve
}

// noted sweeps the objects with a due item for today or earlier.
func (s *Sweeper) noted(ctx context.Context, _ *sweepState) (done bool, err error) {
	today := dayOf(s.Now().Unix())
	q := table.Query{PK: dueItems, Limit: table.MaxKeys}
	for more := true; more; {
		page, err := s.Table.Query(ctx, q)
		if err != nil {
			return false, fmt.Errorf("listing what is due: %w", err)
		}
		objects, items := map[blob.Area][]blob.Object{}, map[string]table.Key{}
		more = page.More
		for _, item := range page.Items {
			if day, _, _ := strings.Cut(item.Key.SK, "/"); day > today {
				more = false
				break
			}
			var d dueItem
			q.After = item.Key.SK
			if err := item.Decode(&d); err != nil { // a damaged item must not hold up all others
				s.count(&s.report.Failed)
				s.Log.Error("an item of what is due cannot be read",
					"item", item.Key, "error", err)
				continue
			}
			items[d.Key] = item.Key
			objects[d.Area] = append(objects[d.Area], blob.Object{
				Key:      d.Key,
				Modified: time.Unix(d.Modified, 0),
			})
		}
		for area, objects := range objects {
			n, err := s.visit(ctx, area, objects, func(_ context.Context, _ blob.Area, o blob.Object, next int64) error {
				ops, later := []table.Op{table.Delete(items[o.Key])}, due(
					max(dayOf(next), today),
					area,
					o,
				)
				switch {
				case next > 0 && later.Key == items[o.Key]:
					return nil
				case next > 0:
					ops = append(ops, later)
				}
				return fault.Wrap(s.Table.Write(ctx, ops...), "noting when an object is due")
			})
			if err != nil || n < len(objects) {
				return false, err
			}
		}
	}
	return true, nil
}

// days sweeps the objects whose keys have today's day or an earlier one.
func (s *Sweeper) days(ctx context.Context, at *sweepState) (done bool, err error) {
	today := dayOf(s.Now().Unix())
	skip := func(key string) string {
		switch shard, day := parseFolder(key); {
		case day == "":
			return past(key)
		case day > today && shard < shards-1:
			return folder(shard+1, at.Day)
		case day > today:
			return end
		case day < at.Day:
			return folder(shard, at.Day)
		}
		return ""
	}
	for _, area := range []blob.Area{blob.Backup, blob.Files} { // so that the files moved now are not looked at again
		done, err := s.each(ctx, area, folder(
			0,
			at.Day,
		), skip, func(chunk []blob.Object) (int, error) {
			return s.visit(ctx, area, chunk, s.postpone)
		})
		if err != nil || !done {
			return false, err
		}
	}
	at.Day = today
	return true, nil
}

// postpone writes a due item for an object that a sweep must look at again, unless its key's day
// or a walk will show it.
func (s *Sweeper) postpone(
	ctx context.Context,
	area blob.Area,
	o blob.Object,
	next int64,
) error {
	today := dayOf(s.Now().Unix())
	if k, ok := parseKey(o.Key); !ok || next <= 0 || k.day >= today {
		return nil
	}
	return fault.Wrap(
		s.Table.Write(ctx, due(max(dayOf(next), today), area, o)),
		"noting when an object is due",
	)
}

// walkEvery is how often a walk looks at what the day keys miss.
const walkEvery = 30 * 24 * time.Hour

// walkUsers stands in for an area while a walk lists users.
const walkUsers blob.Area = "users"

// walk lists what the day keys miss: files that never expire, bytes that uploads left among them,
// and leftovers of past days. Then it puts all users with a quota on the quota list.
func (s *Sweeper) walk(ctx context.Context, at *sweepState) (done bool, err error) {
	if at.Area == "" {
		left := time.Unix(at.Walk, 0).Sub(s.Now())
		if left > 0 && left <= walkEvery { // more comes from a clock that ran ahead
			return true, nil
		}
		at.Area = blob.Backup
		at.After = ""
		at.Walk = s.Now().Add(walkEvery).Unix()
	}
	s.await()
	for at.Area != walkUsers {
		if done, err = s.walkArea(ctx, at); err != nil || !done {
			return false, err
		}
		at.Area, at.After = map[blob.Area]blob.Area{
			blob.Backup: blob.Files,
			blob.Files:  walkUsers,
		}[at.Area], ""
	}
	err = s.Users.Names(ctx, at.After, func(u users.User, bad error) (err error) {
		if !s.inTime(ctx) {
			return errNoTime
		}
		if bad == nil && u.Quota > 0 {
			err = s.Users.AddToQuotaList(ctx, u.Name)
		}
		at.After = u.Name
		return err
	})
	if err != nil {
		return false, fault.Wrap(err, "listing users with a quota", errNoTime)
	}
	s.await()
	at.Area, at.After = "", ""
	return true, nil
}

// await waits until all objects that a run has begun to sweep are done.
func (s *Sweeper) await() {
	for range cap(s.sem) {
		s.sem <- struct{}{}
	}
	for range cap(s.sem) {
		<-s.sem
	}
}

var errNoTime = errors.New("no time is left")

func (s *Sweeper) walkArea(ctx context.Context, at *sweepState) (done bool, err error) {
	today := dayOf(s.Now().Unix())
	skip := func(key string) string {
		if shard, day := parseFolder(key); day >= today && day < never {
			return folder(shard, never)
		}
		if strings.HasPrefix(key, Entries) { // a rule of the bucket removes these
			return end
		}
		return ""
	}
	area := at.Area
	return s.each(ctx, area, at.After, skip, func(chunk []blob.Object) (int, error) {
		n, err := s.visit(ctx, area, chunk, s.postpone)
		if n > 0 {
			at.After = chunk[n-1].Key
		}
		return n, err
	})
}

// lapsed ends what no list of objects shows, for users with a quota: reservations that sessions
// left behind, and expired files whose bytes are lost.
func (s *Sweeper) lapsed(ctx context.Context, at *sweepState) (done bool, err error) {
	for user, err := range s.Users.QuotaList(ctx, at.User) {
		if err != nil || !s.inTime(ctx) {
			return false, err
		}
		_, err := s.endReservations(ctx, user, s.Now().Unix())
		err = errors.Join(
			err,
			s.sweepOldest(ctx, blob.Backup, user),
			s.sweepOldest(ctx, blob.Files, user),
		)
		if ctx.Err() != nil {
			return false, err
		}
		if err != nil { // one damaged item must not hold up all other users
			s.count(&s.report.Failed)
			s.Log.Error("a user's lapsed reservations or oldest files could not be swept",
				"user", user, "error", err)
		}
		at.User = user
	}
	at.User = ""
	return true, nil
}

// sweepOldest sweeps the expired files among a user's oldest in an area, whether or not their
// bytes exist. As older files expire, each file's turn comes.
func (s *Sweeper) sweepOldest(ctx context.Context, area blob.Area, user string) error {
	found, err := s.Table.Query(ctx, table.Query{
		PK:    partition(area, user),
		Limit: table.MaxKeys,
	})
	var expired []blob.Object
	for _, item := range found.Items {
		var f File
		if item.Decode(&f) == nil && f.Expired(s.Now()) {
			expired = append(expired, blob.Object{Key: f.Blob, Modified: s.Now()})
		}
	}
	if len(expired) > 0 {
		_, err = s.visit(ctx, area, expired, func(context.Context, blob.Area, blob.Object, int64) error {
			return nil
		})
	}
	return fault.Wrap(err, "sweeping the oldest files of a user")
}

const end = "\x7f" // sorts after all keys

// past returns where the list continues after a key without a day. If an operator put a key
// between the shards, only that key is skipped.
func past(key string) string {
	switch {
	case key < "D":
		return "D"
	case key < "Dg":
		return ""
	}
	return end
}

// each lists an area after a key, and calls do with up to 100 objects at a time; do returns how
// many of them it did. If skip returns a key, the list continues there.
func (s *Sweeper) each(
	ctx context.Context, area blob.Area, after string, skip func(key string) string, do func([]blob.Object) (int, error),
) (done bool, err error) {
	for after != end {
		page, err := s.Blobs.List(ctx, area, after, blob.MaxList)
		if err != nil {
			return false, fmt.Errorf("listing the %s area: %w", area, err)
		}
		after = end
		if len(page) == blob.MaxList {
			after = page[len(page)-1].Key
		}
		for i, o := range page {
			if to := skip(o.Key); to > o.Key {
				page, after = page[:i], to
				break
			}
		}
		for chunk := range slices.Chunk(page, table.MaxKeys) {
			if n, err := do(chunk); err != nil || n < len(chunk) {
				return false, err
			}
		}
	}
	return true, nil
}
