package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

const (
	// checksAtOnce lets checks share the waits for the stores.
	checksAtOnce = 16
	// checkTries bounds how often the quota of a busy user is added up.
	checkTries = 10
	// maxLeftovers bounds the objects that wait to be looked at again.
	maxLeftovers = 50_000
)

// Settle is how long a request may take to remove the bytes of a record that it has
// removed.
const Settle = cleanupTimeout + time.Second

// moveTime is how long the bytes of a file may take to follow their record.
const moveTime = time.Hour

// The kinds of findings.
const (
	BadRecord   = "record"   // it cannot be read, or is another file's
	BadBytes    = "bytes"    // there are none, or the medium cannot read them
	BadSize     = "size"     // there are more or fewer bytes than the record says
	BadChecksum = "checksum" // the bytes are not those that were stored
	BadMove     = "move"     // the bytes have not followed their record to its area, for an hour
	BadLink     = "link"     // it is missing, differs from its record, or has none
	BadQuota    = "quota"    // the use is not the sum of files and reservations
	Leftover    = "leftover" // an object that no record names, or what an interrupted request left
)

// Finding is something that is wrong.
type Finding struct {
	Kind   string
	User   string
	ID     int64  // of the file; 0 for a quota
	Key    string // of the object, after its area, or of an item
	What   string
	Mended bool

	mend []table.Op // for a repair; none if it cannot mend this
}

// CheckReport counts what a run looked at. Unsure users changed all the time, so that
// their quotas could not be compared.
type CheckReport struct{ Files, Objects, Found, Mended, Unsure int }

// Check compares records with objects, links and quotas, while files come and go: it
// looks again before it reports something. Memory does not grow with the number of
// files. It is for one Run.
//
// Repair adds up quotas again, writes and removes links as their records say, and
// removes leftovers as a sweep does. It changes no record, and removes no object that a
// record names.
type Check struct {
	*Sweeper
	Quick  bool // compare sizes, but no checksums for which bytes must be read
	Repair bool
	Settle time.Duration // as the constant; tests wait less
	// Found, Expect and Done are told what is wrong, how many more bytes are to be
	// compared, and how many more were. Done is called from several goroutines.
	Found        func(Finding)
	Expect, Done func(bytes int64)

	mu     sync.Mutex // held to count and to call Found
	report CheckReport
	left   []File // objects that no record names, and that may be removed just now
}

// Run does the whole check.
func (c *Check) Run(ctx context.Context) (CheckReport, error) {
	steps := []func(context.Context) error{c.objects, c.items, c.quotas, c.settle, c.unfinished}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// found counts and tells a finding, which a repair mends first if it can. If a
// condition refuses that, something has changed meanwhile, and nothing is told.
func (c *Check) found(ctx context.Context, f Finding) (told bool, err error) {
	if c.Repair && len(f.mend) > 0 {
		if err := c.Table.Write(ctx, f.mend...); err != nil {
			return false, envelope.Wrap(err, "mending", table.ErrCondition)
		}
		f.Mended = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report.Found++; f.Mended {
		c.report.Mended++
	}
	c.Found(f)
	return true, nil
}

// about returns a finding about a file's bytes.
func (f File) about(kind, what string, values ...any) Finding {
	key := string(f.Area) + "/" + f.Blob
	return Finding{Kind: kind, User: f.Owner, ID: f.ID, Key: key, What: fmt.Sprintf(what, values...)}
}

// objects lists both areas and notes the leftovers.
func (c *Check) objects(ctx context.Context) error {
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		for after, more := "", true; more; {
			page, err := c.Blobs.List(ctx, area, after, blob.MaxList)
			if err != nil {
				return fmt.Errorf("listing the %s area: %w", area, err)
			}
			for chunk := range slices.Chunk(page, table.MaxKeys) {
				named, err := c.named(ctx, area, chunk...)
				if err != nil {
					return err
				}
				for _, o := range chunk {
					c.report.Objects++
					c.Expect(o.Size)
					if !named[o.Key] && c.Now().Sub(o.Modified) > c.Grace {
						owner, id, _ := ParseBlobKey(o.Key)
						c.left = append(c.left, File{Owner: owner, ID: id, Area: area, Blob: o.Key, Length: o.Size})
					}
				}
				after = chunk[len(chunk)-1].Key
			}
			if len(c.left) > maxLeftovers {
				if err := c.settle(ctx); err != nil {
					return err
				}
			}
			more = len(page) == blob.MaxList
		}
	}
	return nil
}

// named returns the keys of those objects that a record names, or that Ferry did not
// make.
func (c *Check) named(ctx context.Context, area blob.Area, objects ...blob.Object) (map[string]bool, error) {
	items, err := c.recordsOf(ctx, area, objects)
	named := map[string]bool{}
	for _, o := range objects {
		var f File
		item, ours := items[o.Key]
		if named[o.Key] = !ours || item.Decode(&f) == nil && f.Blob == o.Key; named[o.Key] || err != nil {
			continue
		}
		owner, id, _ := ParseBlobKey(o.Key)
		f, err = c.current(ctx, owner, id) // a move may not be finished
		named[o.Key] = f.names(File{Area: area, Blob: o.Key})
	}
	return named, err
}

// settle looks again at the leftovers, once all requests that were about to remove
// them have ended.
func (c *Check) settle(ctx context.Context) error {
	if len(c.left) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(c.Settle):
	}
	c.owners = map[string]auth.User{}
	for _, f := range c.left {
		if err := c.leftover(ctx, f); err != nil {
			return err
		}
	}
	c.left = nil
	return nil
}

func (c *Check) leftover(ctx context.Context, f File) error {
	if open, err := c.inSession(ctx, f.Blob); err != nil || open {
		return err
	}
	named, err := c.named(ctx, f.Area, blob.Object{Key: f.Blob})
	if err != nil || named[f.Blob] {
		return err
	}
	if _, err = blob.Measure(ctx, c.Blobs, f.Area, f.Blob, true, func(int64) {}); errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	unknown, err := c.newerThanTable(ctx, f.Area, f.Blob)
	if err != nil {
		return err
	}
	bad := f.about(Leftover, "no record names these %d bytes", f.Length)
	if unknown {
		bad.What += "; they are newer than the table, so they stay: was an older table restored?"
	} else if c.Repair {
		if err := c.Blobs.Delete(ctx, f.Area, f.Blob); err != nil {
			return fmt.Errorf("removing a leftover: %w", err)
		}
		bad.Mended = true
	}
	_, err = c.found(ctx, bad)
	return err
}

// unfinished reports what interrupted requests left, and a repair removes it.
func (c *Check) unfinished(ctx context.Context) error {
	_, err := c.Blobs.Sweep(ctx, c.Now().Add(-c.Grace), func(name string) bool {
		_, err := c.found(ctx, Finding{Kind: Leftover, Key: name, What: "an interrupted request left this", Mended: c.Repair})
		return c.Repair && err == nil
	})
	return envelope.Wrap(err, "looking for unfinished objects")
}

// items looks at all records and links.
func (c *Check) items(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(checksAtOnce)
	err := c.Table.Scan(inner, func(item table.Item) error {
		kind, owner, _ := strings.Cut(item.Key.PK, "#")
		switch kind {
		case string(blob.Files), string(blob.Backup):
			c.report.Files++
			var f File
			if err := item.Decode(&f); err != nil || f.key() != item.Key {
				id, _ := strconv.ParseInt(item.Key.SK, 10, 64)
				bad := Finding{Kind: BadRecord, User: owner, ID: id, Key: item.Key.PK, What: "the record is damaged"}
				_, err := c.found(inner, bad)
				return err
			}
			g.Go(func() error { return c.file(inner, f) })
		case "link":
			l, err := decodeLink(item)
			if err != nil {
				_, err := c.found(inner, Finding{Kind: BadLink, Key: item.Key.PK, What: "the link cannot be read"})
				return err
			}
			g.Go(func() error { return c.link(inner, item.Key, l) })
		}
		return inner.Err()
	})
	return cmp.Or(g.Wait(), err)
}

// file compares a record with its bytes and links.
func (c *Check) file(ctx context.Context, f File) error {
	var all []Finding
	var written blob.Written
	var err error
	for _, at := range f.Places() {
		if written, err = blob.Measure(ctx, c.Blobs, at.Area, at.Blob, c.Quick, c.Done); !errors.Is(err, blob.ErrNotFound) {
			break
		}
	}
	if err == nil && len(f.From) > 0 && c.Now().Sub(time.Unix(f.Moved, 0)) > moveTime {
		bad := f.about(BadMove, "the bytes have not moved from %s yet", strings.Join(f.From, " and "))
		bad.Mended = c.Repair && c.Finish(ctx, f) == nil
		all = append(all, bad)
	}
	sum := fmt.Sprintf("%016x", written.CRC64NVME)
	_, elsewhere := c.Blobs.(blob.Describer)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		all = append(all, f.about(BadBytes, "the bytes are missing"))
	case err != nil && (elsewhere || ctx.Err() != nil): // it may be the network
		return fmt.Errorf("comparing file %d of %s: %w", f.ID, f.Owner, err)
	case err != nil:
		all = append(all, f.about(BadBytes, "the bytes cannot be read: %v", err))
	case written.Size != f.Length:
		all = append(all, f.about(BadSize, "there are %d bytes, but the record says %d", written.Size, f.Length))
	case !c.Quick && sum != f.CRC64:
		all = append(all, f.about(BadChecksum, "the CRC64NVME is %s, but the record says %s", sum, f.CRC64))
	}
	keys := c.linkKeys(f)
	items, err := c.Table.GetMany(ctx, keys...)
	if err != nil {
		return fmt.Errorf("reading a file's links: %w", err)
	}
	for i, item := range items {
		l, err := decodeLink(item)
		bad, same := f.about(BadLink, "a link differs from the record"), table.AtMost("downloads", l.Downloads)
		switch {
		case !item.Found() && !f.Expired(c.Now()): // the table may have dropped an expired one
			bad.What, same = "a link is missing", table.NotExists()
		case !item.Found() || err == nil && l.File.same(f):
			continue
		}
		bad.Key, bad.mend = keys[i].PK, c.relink(f, i, l, same)
		all = append(all, bad)
	}
	if len(all) == 0 {
		return nil
	}
	now, err := c.get(ctx, f.Area, f.Owner, f.ID)
	if envelope.IsFault(err, envelope.NotFound) || err == nil && now.Blob != f.Blob {
		return nil // it was moved or removed meanwhile
	}
	if err != nil {
		return err
	}
	for _, bad := range all {
		if _, err := c.found(ctx, bad); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether two copies of a record are equal. A link's copy may be older than
// the end of a move.
func (f File) same(other File) bool {
	f.From, other.From = nil, nil
	return reflect.DeepEqual(f, other)
}

// relink returns the operations that write a link of a file again, as the one of its
// linkKeys with this index, if it is still the same.
func (s *Service) relink(f File, i int, l Link, same table.Cond) []table.Op {
	links := make([]Link, 1+len(f.Recipients))
	if links[i] = l; i > 0 {
		links[i].Recipient = f.Recipients[i-1]
	}
	return []table.Op{
		table.Check(f.key(), table.Equal("blob", f.Blob)),
		s.publish(f, links)[1+i].If(same),
	}
}

// link reports a link that is none of its file's. Others are compared with their
// records.
func (c *Check) link(ctx context.Context, key table.Key, l Link) error {
	same := table.NotExists()
	switch f, err := c.get(ctx, l.File.Area, l.File.Owner, l.File.ID); {
	case err == nil && slices.Contains(c.linkKeys(f), key):
		return nil
	case err == nil:
		same = table.Equal("blob", f.Blob)
	case !envelope.IsFault(err, envelope.NotFound):
		return err
	}
	var now Link
	err := c.Table.Get(ctx, key, &now)
	if err != nil || now.File.Blob != l.File.Blob { // its file was moved or removed meanwhile
		return envelope.Wrap(err, "reading a link", table.ErrNotFound)
	}
	bad := l.File.about(BadLink, "a link belongs to no file")
	bad.Key, bad.mend = key.PK, []table.Op{table.Check(l.File.key(), same), table.Delete(key)}
	_, err = c.found(ctx, bad)
	return err
}

// quotas compares the use of each user who has a quota.
func (c *Check) quotas(ctx context.Context) error {
	return auth.NewUsers(c.Table, c.Now).List(ctx, func(u auth.User) error {
		if c.Repair && u.Quota > 0 {
			if _, err := c.endReservations(ctx, u.Name, c.Now().Unix()); err != nil {
				return err
			}
		}
		for range checkTries {
			if sure, err := c.quota(ctx, u.Name); sure || err != nil {
				return err
			}
		}
		c.report.Unsure++
		return nil
	})
}

// quota compares a user's use with the sum. It is sure if nothing has changed while it
// was added up twice.
func (c *Check) quota(ctx context.Context, name string) (sure bool, err error) {
	u, err := c.user(ctx, name)
	if err != nil || u.Quota == 0 {
		return err == nil, err
	}
	sum, err := c.tally(ctx, u)
	if err != nil || sum.used == u.Used {
		return err == nil, err
	}
	again, err := c.tally(ctx, u)
	if err != nil || again != sum {
		return false, err
	}
	now, err := c.user(ctx, name)
	if err != nil || now.Used != u.Used || now.LastFile != u.LastFile {
		return false, err
	}
	what := fmt.Sprintf("%d bytes count as used, but files and reservations have %d", u.Used, sum.used)
	mend := table.Update(auth.UserKey(name)).Set("used", sum.used).
		If(u.SameUse(), table.Equal("lastFile", u.LastFile), table.Equal("generation", u.Generation))
	return c.found(ctx, Finding{
		Kind: BadQuota, User: name, Key: auth.UserKey(name).PK, What: what, mend: []table.Op{mend},
	})
}
