package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// checksAtOnce is how many checks wait for the stores at the same time.
const checksAtOnce = 16

// RemovalTime is how long a request that removed a record may take to remove its bytes.
const RemovalTime = cleanupTimeout + time.Second

// moveTime is how long a file's bytes may take to follow its record.
const moveTime = time.Hour

// The kinds of findings.
const (
	BadRecord   = "record"   // unreadable, or another file's
	BadItem     = "item"     // any other unreadable item
	BadBytes    = "bytes"    // missing, or the medium cannot read them
	BadSize     = "size"     // more or fewer bytes than the record says
	BadChecksum = "checksum" // not the bytes that were stored
	BadMove     = "move"     // an hour after a move, the bytes have not followed their record
	BadLink     = "link"     // missing, different from its record, or without one
	BadUser     = "user"     // missing, unreadable, or older than their files
	BadQuota    = "quota"    // the usage is not the sum of files and reservations
	Leftover    = "leftover" // an object that no record names, or what an interrupted request left
)

// Finding is a fault or a leftover.
type Finding struct {
	Kind   string `json:"kind"`
	User   string `json:"user,omitempty"`
	ID     int64  `json:"id,omitempty"` // of the file
	Key    string `json:"key"`          // of the object, as AREA/KEY, or of an item
	What   string `json:"what"`
	Mended bool   `json:"mended,omitempty"`
	Due    bool   `json:"due,omitempty"` // no fault: a sweep will remove it
	// Lost says that only a backup may still have the data.
	Lost bool `json:"lost,omitempty"`

	Mend []table.Op `json:"-"` // what a repair writes; none if it cannot mend this
	// Copy is a link's copy of a record that may itself be wrong or missing. Still is the check
	// that a link without a record has not changed.
	Copy  *File    `json:"-"`
	Still table.Op `json:"-"`
}

// CheckReport counts what a run looked at. Unsure counts users who kept changing, so that their
// quotas could not be compared. Many counts the leftovers, including links, that a repair removes
// only with RemoveMany.
type CheckReport struct {
	Files   int `json:"files"`
	Objects int `json:"objects"`
	Found   int `json:"found"`
	Mended  int `json:"mended"`
	Due     int `json:"due"`
	Unsure  int `json:"unsure"`
	Many    int `json:"many"`
}

// Check compares records with objects, links and users, while files come and go, so it looks
// again before it reports anything. Memory grows with the number of users, not of files. Use it
// for one Run.
//
// Repair recomputes quotas. It rewrites records that only a link still has, and links that differ
// from their records. It gives bytes found elsewhere back to their records. It sets aside
// leftovers, as a sweep does, and links that lead to nothing.
type Check struct {
	*Service
	Grace      time.Duration // as a Sweeper's
	Quick      bool          // compare sizes, but no checksums that need the bytes read
	Repair     bool
	RemoveMany bool          // a repair removes leftovers even if there are more than 100
	Wait       time.Duration // RemovalTime; tests wait less
	// Found gets each finding. Expect gets how many more bytes will be compared, and Done how
	// many more were. Done is called from several goroutines.
	Found        func(Finding)
	Expect, Done func(bytes int64)

	mu      sync.Mutex // held to count and to call Found
	report  CheckReport
	left    []*leftover // objects that no record names
	unseen  int         // how many more there are beyond maxLeftovers
	strays  []stray
	dead    []stray                // strays that lead to nothing
	sweeper Sweeper                // knows what must stay
	users   map[string]*holding    // by name, from a scan of the table
	damaged map[table.Key]*Finding // records that cannot be read
}

// Run does the whole check.
func (c *Check) Run(ctx context.Context) (CheckReport, error) {
	c.sweeper = Sweeper{Service: c.Service, Grace: c.Grace, quiet: true}
	c.users, c.damaged = map[string]*holding{}, map[table.Key]*Finding{}
	steps := []func(context.Context) error{
		c.objects, c.items, c.strayLinks, c.rebuild, c.holdings, c.leftovers, c.removeLinks, c.unfinished,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// found counts and reports a finding. A repair mends it first, if it can. If a condition refuses
// the repair, something changed meanwhile, and nothing is reported.
func (c *Check) found(ctx context.Context, f Finding) (told bool, err error) {
	if c.Repair && len(f.Mend) > 0 {
		if err := c.Table.Write(ctx, f.Mend...); err != nil {
			return false, fault.Wrap(err, "mending", table.ErrCondition)
		}
		f.Mended = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Due {
		c.report.Due++
	} else if c.report.Found++; f.Mended {
		c.report.Mended++
	}
	c.Found(f)
	return true, nil
}

// About returns a finding about a file's bytes.
func (f File) About(kind, what string, values ...any) Finding {
	return Finding{
		Kind: kind,
		User: f.Owner,
		ID:   f.ID,
		Key:  f.place(),
		What: fmt.Sprintf(what, values...),
	}
}

// items scans all items. Those that other steps compare are only noted.
func (c *Check) items(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(checksAtOnce)
	err := c.Table.Scan(inner, func(item table.Item) error {
		var err error
		kind, name, _ := strings.Cut(item.Key.PK, "#")
		of, isLink, damaged := c.Links.Copy(item)
		switch {
		case kind == string(blob.Files) || kind == string(blob.Backup):
			c.report.Files++
			var f File
			if f, err = DecodeFile(item); err != nil {
				return c.damagedRecord(inner, item.Key)
			}
			c.holding(f.Owner).has(f.ID)
			g.Go(func() error { return c.file(inner, f) })
		case isLink:
			if damaged != nil {
				c.stray(item.Key, File{})
				return nil
			}
			c.holding(of.Owner).has(of.ID)
			g.Go(func() error {
				bad, err := c.Links.Stray(inner, item.Key, of)
				if bad != nil {
					c.stray(item.Key, of)
				}
				return err
			})
		case kind == "upload":
			var sess Session
			if err = item.Decode(&sess); err == nil {
				c.holding(sess.Owner).has(sess.FileID)
			}
		default:
			err = c.noteUser(item, kind, name)
		}
		if err != nil {
			_, err = c.found(inner, Finding{
				Kind: BadItem,
				Key:  item.Key.String(),
				What: "the item cannot be read",
			})
		}
		if err != nil {
			return err
		}
		return inner.Err()
	})
	if failed := g.Wait(); failed != nil {
		return failed
	}
	return err
}

// damagedRecord notes a record that cannot be read. It may be rebuilt once all links are known.
func (c *Check) damagedRecord(ctx context.Context, key table.Key) error {
	_, owner, _ := strings.Cut(key.PK, "#")
	id, _ := strconv.ParseInt(key.SK, 10, 64)
	user := c.holding(owner)
	user.has(id)
	user.unsure = true
	c.damaged[key] = &Finding{
		Kind: BadRecord,
		User: owner,
		ID:   id,
		Key:  key.PK,
		What: "the record is damaged",
		Lost: true,
	}
	return ctx.Err()
}

// rebuild reports the damaged records. A repair restores them from a link's copy.
func (c *Check) rebuild(ctx context.Context) error {
	if len(c.damaged) == 0 {
		return nil
	}
	copies := map[table.Key]File{}
	err := c.Table.Scan(ctx, func(item table.Item) error {
		f, isLink, err := c.Links.Copy(item)
		was := copies[f.key()]
		if err == nil && isLink && c.damaged[f.key()] != nil &&
			newer(f, was) >= 0 { // a stray link is older
			copies[f.key()] = f
		}
		return ctx.Err()
	})
	for key := range c.damaged {
		if err == nil {
			err = c.rebuildOne(ctx, key, copies[key])
		}
	}
	return err
}

// rebuildOne reports a damaged record. f is its newest copy, if there is one.
func (c *Check) rebuildOne(ctx context.Context, key table.Key, f File) error {
	var item table.Item
	err := c.Table.Get(ctx, key, &item)
	if _, damaged := DecodeFile(item); err != nil || damaged == nil { // it was removed or restored meanwhile
		return fault.Wrap(err, "reading a damaged record", table.ErrNotFound)
	}
	bad := *c.damaged[key]
	if f.ID > 0 {
		bad.What += "; a link has a copy, from which --repair writes it again"
		bad.Mend = []table.Op{f.put().If(table.Exists())}
	}
	if _, err := c.found(ctx, bad); err != nil || f.ID == 0 || !c.Repair {
		return err
	}
	c.holding(bad.User).unsure = false
	return c.file(ctx, f)
}

// file compares a record with its bytes and links.
func (c *Check) file(ctx context.Context, f File) error {
	bad, err := c.bytes(ctx, f)
	if err != nil {
		return err
	}
	links, err := c.Links.Compare(ctx, f, c.Quick, c.Repair)
	moves := len(f.From) > 0 && c.Now().Sub(time.Unix(f.Moved, 0)) > moveTime
	if err != nil || len(bad)+len(links) == 0 && !moves {
		return err
	}
	now, err := c.get(ctx, f.Area, f.Owner, f.ID)
	if fault.Is(err, fault.NotFound) || err == nil && (now.Blob != f.Blob || now.Key != f.Key) {
		return nil // it was moved, renewed or removed meanwhile
	}
	if err != nil {
		return err
	}
	for i := range bad {
		if err := c.recover(ctx, now, links, &bad[i]); err != nil {
			return err
		}
		// The record may be wrong, and a copy right.
		links = slices.DeleteFunc(links, func(l Finding) bool { return l.Copy != nil })
		if bad[i].Mend != nil { // the links were compared with the wrong record
			links = nil
		}
	}
	if len(bad) == 0 && moves {
		bad = []Finding{f.About(
			BadMove,
			"the bytes have not moved from %s yet",
			strings.Join(f.From, " and "),
		)}
		bad[0].Mended = c.Repair && c.bring(ctx, now) == nil
	}
	for _, f := range append(bad, links...) {
		if _, err := c.found(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// recover looks for a file's lost bytes: a link's copy of the record may fit the bytes that are
// there, or the bytes may be elsewhere.
func (c *Check) recover(ctx context.Context, f File, links []Finding, bad *Finding) error {
	for _, l := range links {
		if l.Copy == nil {
			continue
		}
		one := *l.Copy
		one.From = nil // left over from a finished move
		if one.key() != f.key() {
			continue
		}
		if wrong, err := c.bytes(ctx, one); err != nil || len(wrong) > 0 {
			continue
		}
		bad.What += "; the record is wrong, and a link has a copy, from which --repair writes it again"
		bad.Lost, bad.Mend = false, []table.Op{one.put().If(f.Unchanged()...)}
		return nil
	}
	return c.giveBack(ctx, f, bad)
}

// bytes compares a record with its bytes, and returns what is wrong.
func (c *Check) bytes(ctx context.Context, f File) ([]Finding, error) {
	written, err := c.measure(ctx, f, c.Quick, c.Done)
	sum := fmt.Sprintf("%016x", written.CRC64NVME)
	var bad Finding
	switch {
	case errors.Is(err, blob.ErrNotFound):
		bad = f.About(BadBytes, "the bytes are missing")
	case err != nil && (!c.Blobs.Local() || ctx.Err() != nil): // it may be the network
		return nil, fmt.Errorf("comparing file %d of %s: %w", f.ID, f.Owner, err)
	case err != nil:
		bad = f.About(BadBytes, "the bytes cannot be read: %v", err)
	case written.Size != f.Length:
		bad = f.About(
			BadSize,
			"there are %d bytes, but the record says %d",
			written.Size,
			f.Length,
		)
	case !c.Quick && sum != f.CRC64:
		bad = f.About(BadChecksum, "the CRC64NVME is %s, but the record says %s", sum, f.CRC64)
	default:
		return nil, nil
	}
	bad.Lost = true
	return []Finding{bad}, nil
}
