package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/retry"
	"ferry/shared/table"
)

// maxLeftovers bounds the objects without a record that a check remembers.
const maxLeftovers = 50_000

// leftover is an object that no record names. It may be all that is left of a file.
type leftover struct {
	File
	old  bool // older than Grace
	back bool // it belongs to a record that has lost its bytes
	// The rest is set by the second look.
	why string // the reason to keep it
	of  owner
}

// objects lists both areas and notes the leftovers.
func (c *Check) objects(ctx context.Context) error {
	for _, area := range blob.Areas() {
		_, err := c.sweeper.each(ctx, area, "", func(string) string { return "" }, func(chunk []blob.Object) (int, error) {
			items, err := c.sweeper.recordsOf(ctx, area, chunk)
			if err != nil {
				return 0, err
			}
			for _, o := range chunk {
				if strings.HasPrefix(o.Key, Entries) { // a rule of the bucket removes it
					continue
				}
				c.report.Objects++
				c.Expect(o.Size)
				item, ours := items[o.Key]
				f, unread := DecodeFile(item)
				named := !ours || unread == nil && f.Blob == o.Key
				if !named {
					_, named, err = c.named(ctx, stored(area, o))
				}
				if err != nil {
					return 0, err
				}
				if !named {
					c.note(area, o)
				}
			}
			return len(chunk), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Check) note(area blob.Area, o blob.Object) {
	if len(c.left) == maxLeftovers {
		c.unseen++
		return
	}
	c.left = append(c.left, &leftover{
		File: stored(area, o),
		old:  c.Now().Sub(o.Modified) > c.Grace,
	})
}

// named reports whether the record with an object's owner and id names the object, and returns
// that record. A record that cannot be read might name it, so it counts as naming it.
func (c *Check) named(ctx context.Context, object File) (f File, named bool, err error) {
	f, err = c.current(ctx, object.Owner, object.ID) // a move may not be finished
	if errors.Is(err, table.ErrUnreadable) {
		return f, true, nil
	}
	return f, f.names(object), err
}

// giveBack looks for the lost bytes of a file among the leftovers, by owner, id, length and
// checksum. A repair names them in the record as the place to move from, and finishes that move.
// The record and its links get a new key, because the old one may hold other bytes.
func (c *Check) giveBack(ctx context.Context, f File, bad *Finding) error {
	for _, l := range c.left {
		if l.Owner != f.Owner || l.ID != f.ID || l.Length != f.Length {
			continue
		}
		written, err := c.measure(ctx, l.File, false, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !f.Fits(written) {
			continue
		}
		c.mu.Lock()
		l.back, bad.Lost = true, false
		c.mu.Unlock()
		bad.What += fmt.Sprintf("; they lie at %s, from where --repair gives them back",
			l.place())
		if !c.Repair {
			return nil
		}
		now, err := c.Rekey(ctx, f, []string{l.place()}, nil)
		if err == nil {
			err = c.bring(ctx, now)
		}
		bad.Mended = err == nil
		if err != nil {
			bad.What += fmt.Sprintf(", but: %v", err)
		}
		return nil
	}
	return nil
}

// leftovers looks again at the objects that no record names, once every request that may be
// removing them has ended. A repair removes them.
func (c *Check) leftovers(ctx context.Context) error {
	c.sweeper.owners.Clear() // a repair may have changed them
	if err := c.chooseLeft(ctx); err != nil {
		return err
	}
	if len(c.left) > 0 {
		if err := retry.Sleep(ctx, c.Wait); err != nil {
			return err
		}
	}
	links, err := c.countDead(ctx)
	if err != nil {
		return err
	}
	known := c.unseen + links
	var left []*leftover
	for _, l := range c.left {
		still, err := c.stillLeft(ctx, l)
		if err != nil {
			return err
		}
		if still {
			left = append(left, l)
		}
		if still && l.why == "" && !l.of.removed {
			known++
		}
	}
	if known > mostRemoved {
		c.report.Many = known
	}
	if c.unseen > 0 {
		what := fmt.Sprintf(
			"no record names %d further objects, which were not looked at; run it again", c.unseen,
		)
		if _, err := c.found(ctx, Finding{Kind: Leftover, Key: "-", What: what}); err != nil {
			return err
		}
	}
	for _, l := range left {
		if err := c.remove(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// chooseLeft keeps only the objects to report now: those older than Grace, and those whose user
// or id the table does not know. An id is given out before its bytes arrive, so the latter show
// that the table is older than its objects.
func (c *Check) chooseLeft(ctx context.Context) error {
	var left []*leftover
	for _, l := range c.left {
		of, err := c.sweeper.owner(ctx, l.Owner)
		if err != nil {
			return err
		}
		unknown := of.lost || !of.removed && l.ID > of.LastFile
		if !l.back && (l.old || unknown) {
			left = append(left, l)
		}
	}
	c.left = left
	return nil
}

// tooMany reports whether a leftover must stay because there are so many. Those of removed users
// never must.
func (c *Check) tooMany(removed bool) bool {
	return c.report.Many > 0 && !removed && !c.RemoveMany
}

// stillLeft reports whether an object is still a leftover.
func (c *Check) stillLeft(ctx context.Context, l *leftover) (still bool, err error) {
	if open, err := c.inSession(ctx, l.Blob); err != nil || open {
		return false, err
	}
	f, named, err := c.named(ctx, l.File)
	if err != nil || named {
		return false, err
	}
	_, err = c.measure(ctx, l.File, true, nil)
	if errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		l.why, l.of, err = c.sweeper.needed(ctx, f, l.Blob)
	}
	return err == nil, err
}

// remove reports a leftover; a repair sets it aside.
func (c *Check) remove(ctx context.Context, l *leftover) error {
	bad := l.About(Leftover, "no record names these %d bytes", l.Length)
	many := c.tooMany(l.of.removed)
	switch {
	case l.why != "":
		bad.What += "; they stay: " + l.why
	case c.Repair && !many:
		err := c.Blobs.SetAside(ctx, l.Area, l.Blob, c.Now())
		bad.Mended = err == nil
		if err != nil {
			bad.What += fmt.Sprintf("; they stay: %v", err)
		}
	case !many:
		bad.Due = true
		bad.What += "; they will be removed " + c.dueDay(l.Blob)
	}
	_, err := c.found(ctx, bad)
	return err
}

// dueDay says when a sweep removes a leftover: on the day in its key.
func (c *Check) dueDay(key string) string {
	k, _ := parseKey(key)
	switch {
	case k.day == never:
		return "within 30 days"
	case k.day > dayOf(c.Now().Unix()):
		return "on " + k.day
	}
	return "by the next sweep"
}

// unfinished reports what interrupted requests left. A repair or the next sweep removes it.
func (c *Check) unfinished(ctx context.Context) error {
	_, err := c.Blobs.Sweep(ctx, c.Now().Add(-c.Grace), func(name string) bool {
		bad := Finding{
			Kind:   Leftover,
			Key:    name,
			What:   "an interrupted request left this",
			Mended: c.Repair,
			Due:    !c.Repair,
		}
		if bad.Due {
			bad.What += "; it will be removed by the next sweep"
		}
		_, err := c.found(ctx, bad)
		return c.Repair && err == nil
	})
	return fault.Wrap(err, "looking for unfinished objects")
}
