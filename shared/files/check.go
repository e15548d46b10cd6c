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

// The kinds of findings.
const (
	BadRecord   = "record"   // it cannot be read, or is another file's
	BadBytes    = "bytes"    // there are none, or the medium cannot read them
	BadSize     = "size"     // there are more or fewer bytes than the record says
	BadChecksum = "checksum" // the bytes are not those that were stored
	BadLink     = "link"     // it is missing, differs from its record, or has none
	BadQuota    = "quota"    // the use is not the sum of files and reservations
	Leftover    = "leftover" // an object that no record names
)

// Finding is something that is wrong.
type Finding struct {
	Kind   string
	User   string
	ID     int64  // of the file; 0 for a quota
	Key    string // of the object, after its area, or of an item
	What   string
	Mended bool
}

// CheckReport counts what a run looked at. Unsure users changed all the time, so that
// their quotas could not be compared.
type CheckReport struct{ Files, Objects, Found, Mended, Unsure int }

// Check compares records with objects, links and quotas, while files come and go: it
// looks again before it reports something. Memory does not grow with the number of
// files. It is for one Run.
//
// Repair adds up quotas again, writes missing links, and removes leftovers as a sweep
// does. It changes no record, and removes no object that a record names.
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
	left   []leftover
}

// leftover is an object that no record names, and that may be removed just now.
type leftover struct {
	area blob.Area
	blob.Object
}

// Run does the whole check.
func (c *Check) Run(ctx context.Context) (CheckReport, error) {
	for _, step := range []func(context.Context) error{c.objects, c.items, c.quotas, c.settle} {
		if err := step(ctx); err != nil {
			return c.report, err
		}
	}
	if c.Repair {
		return c.report, c.removeLeftovers(ctx)
	}
	return c.report, nil
}

func (c *Check) found(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report.Found++; f.Mended {
		c.report.Mended++
	}
	c.Found(f)
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
				named, err := c.named(ctx, area, chunk)
				if err != nil {
					return err
				}
				for _, o := range chunk {
					c.report.Objects++
					c.Expect(o.Size)
					if !named(o) && c.Now().Sub(o.Modified) > c.Grace {
						c.left = append(c.left, leftover{area, o})
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

// named returns a function that reports whether a record names one of these objects,
// or Ferry did not make it.
func (c *Check) named(ctx context.Context, area blob.Area, objects []blob.Object) (func(blob.Object) bool, error) {
	items, err := c.recordsOf(ctx, area, objects)
	return func(o blob.Object) bool {
		var f File
		item, ours := items[o.Key]
		return !ours || item.Decode(&f) == nil && f.Blob == o.Key
	}, err
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
	for _, l := range c.left {
		if err := c.leftover(ctx, l); err != nil {
			return err
		}
	}
	c.left = nil
	return nil
}

func (c *Check) leftover(ctx context.Context, l leftover) error {
	named, err := c.named(ctx, l.area, []blob.Object{l.Object})
	if err != nil || named(l.Object) {
		return err
	}
	if open, err := c.inSession(ctx, l.Key); err != nil || open {
		return err
	}
	_, err = blob.Measure(ctx, c.Blobs, l.area, l.Key, true, func(int64) {})
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	unknown, err := c.newerThanTable(ctx, l.area, l.Key)
	if err != nil {
		return err
	}
	owner, id, _ := ParseBlobKey(l.Key)
	f := File{Owner: owner, ID: id, Area: l.area, Blob: l.Key}.about(Leftover, "no record names these %d bytes", l.Size)
	if unknown {
		f.What += "; they are newer than the table, so they stay: was an older table restored?"
	} else if c.Repair {
		if err := c.Blobs.Delete(ctx, l.area, l.Key); err != nil {
			return fmt.Errorf("removing a leftover: %w", err)
		}
		f.Mended = true
	}
	c.found(f)
	return nil
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
				c.found(Finding{Kind: BadRecord, User: owner, ID: id, Key: item.Key.PK, What: "the record is damaged"})
				return nil
			}
			g.Go(func() error { return c.file(inner, f) })
		case "link":
			l, err := decodeLink(item)
			if err != nil {
				c.found(Finding{Kind: BadLink, Key: item.Key.PK, What: "the link is damaged"})
				return nil
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
	written, err := blob.Measure(ctx, c.Blobs, f.Area, f.Blob, c.Quick, c.Done)
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
	var missing []int
	for i, item := range items {
		l, err := decodeLink(item)
		switch {
		case !item.Found() && !f.Expired(c.Now()): // the table may have dropped an expired one
			missing = append(missing, i)
		case item.Found() && (err != nil || !reflect.DeepEqual(l.File, f)):
			bad := f.about(BadLink, "a link differs from the record")
			bad.Key = keys[i].PK
			all = append(all, bad)
		}
	}
	if len(all)+len(missing) == 0 {
		return nil
	}
	now, err := c.get(ctx, f.Area, f.Owner, f.ID)
	if envelope.IsFault(err, envelope.NotFound) || err == nil && now.Blob != f.Blob {
		return nil // it was moved or removed meanwhile
	}
	for _, bad := range all {
		c.found(bad)
	}
	if err == nil && len(missing) > 0 {
		err = c.missing(ctx, f, keys, missing)
	}
	return err
}

// missing reports the links of a file that are missing, and writes them again.
func (c *Check) missing(ctx context.Context, f File, keys []table.Key, which []int) error {
	links := make([]Link, len(keys))
	for i, id := range f.Recipients {
		links[i+1].Recipient = id
	}
	puts := c.publish(f, links)[1:]
	for _, i := range which {
		bad := f.about(BadLink, "a link is missing")
		bad.Key = keys[i].PK
		if c.Repair {
			err := c.Table.Write(ctx, table.Check(f.key(), table.Equal("blob", f.Blob)), puts[i].If(table.NotExists()))
			if errors.Is(err, table.ErrCondition) {
				continue // the file was moved meanwhile
			}
			if err != nil {
				return fmt.Errorf("writing a link again: %w", err)
			}
			bad.Mended = true
		}
		c.found(bad)
	}
	return nil
}

// link reports a link that is none of its file's. Others are compared with their
// records.
func (c *Check) link(ctx context.Context, key table.Key, l Link) error {
	f, err := c.get(ctx, l.File.Area, l.File.Owner, l.File.ID)
	if err != nil && !envelope.IsFault(err, envelope.NotFound) {
		return err
	}
	if err == nil && slices.Contains(c.linkKeys(f), key) {
		return nil
	}
	var now Link
	err = c.Table.Get(ctx, key, &now)
	if err != nil || now.File.Blob != l.File.Blob { // its file was moved or removed meanwhile
		return envelope.Wrap(err, "reading a link", table.ErrNotFound)
	}
	bad := l.File.about(BadLink, "a link belongs to no file")
	bad.Key = key.PK
	c.found(bad)
	return nil
}

// quotas compares the use of each user who has a quota.
func (c *Check) quotas(ctx context.Context) error {
	return auth.NewUsers(c.Table, c.Now).List(ctx, func(u auth.User) error {
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
	users := auth.NewUsers(c.Table, c.Now)
	u, err := users.Get(ctx, name)
	if errors.Is(err, auth.ErrUnknownUser) || err == nil && u.Quota == 0 {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	sum, err := c.tally(ctx, u)
	if err != nil || sum.used == u.Used {
		return err == nil, err
	}
	again, err := c.tally(ctx, u)
	if err != nil || again != sum {
		return false, err
	}
	now, err := users.Get(ctx, name)
	if err != nil || now.Used != u.Used || now.LastFile != u.LastFile {
		return errors.Is(err, auth.ErrUnknownUser), envelope.Wrap(err, "reading a user", auth.ErrUnknownUser)
	}
	if c.Repair {
		same := table.Equal("used", u.Used)
		if u.Used == 0 {
			same = table.AtMost("used", 0) // it may not be stored
		}
		err := c.Table.Write(ctx, table.Update(auth.UserKey(name)).Set("used", sum.used).
			If(same, table.Equal("lastFile", u.LastFile), table.Equal("generation", u.Generation)))
		if err != nil {
			return false, envelope.Wrap(err, "correcting a quota", table.ErrCondition)
		}
	}
	c.found(Finding{Kind: BadQuota, User: name, Key: auth.UserKey(name).PK, Mended: c.Repair,
		What: fmt.Sprintf("%d bytes count as used, but files and reservations have %d", u.Used, sum.used)})
	return true, nil
}
