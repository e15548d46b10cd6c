package files

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// stray is a link that seemed to belong to no file, or that cannot be read.
type stray struct {
	key     table.Key
	of      File    // the link's copy of its record
	bad     Finding // from the second look
	removed bool    // its user was removed
}

func (c *Check) stray(key table.Key, of File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = append(c.strays, stray{key: key, of: of})
}

// strayLinks looks again at the links that seemed to belong to no file, because a repair may have
// rewritten them. It reports those that cannot be read, and the records that are lost.
func (c *Check) strayLinks(ctx context.Context) error {
	lost := map[table.Key][]stray{} // by file, in whichever area
	for _, s := range c.strays {
		bad, err := c.Links.Stray(ctx, s.key, s.of)
		if err != nil {
			return err
		}
		if bad == nil {
			continue
		}
		s.bad = *bad
		file := Key("", s.of.Owner, s.of.ID)
		switch {
		case len(bad.Mend) == 0: // it cannot be read
			_, err = c.found(ctx, s.bad)
		case bad.Copy != nil: // its record is missing
			lost[file] = append(lost[file], s)
		default:
			c.dead = append(c.dead, s)
		}
		if err != nil {
			return err
		}
	}
	for _, all := range lost {
		if err := c.lostRecord(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// lostRecord reports a record that is missing although links still lead to the file's bytes. A
// repair writes it again from the newest copy. Links are dead if the bytes are missing, the user
// was removed, or the file has a record elsewhere.
func (c *Check) lostRecord(ctx context.Context, all []stray) error {
	slices.SortFunc(all, func(a, b stray) int { return newer(*b.bad.Copy, *a.bad.Copy) })
	of := all[0].of
	now, err := c.current(ctx, of.Owner, of.ID)
	if errors.Is(err, table.ErrUnreadable) { // the record is reported elsewhere, and may be rebuilt from these links
		return nil
	}
	if err != nil {
		return err
	}
	owner, err := c.sweeper.owner(ctx, of.Owner)
	if err != nil {
		return err
	}
	for _, s := range all {
		f := *s.bad.Copy
		if now.ID != 0 || owner.removed || owner.Incarnation > f.Incarnation {
			break
		}
		there, err := c.hasBytes(ctx, f)
		if err != nil {
			return err
		}
		if there {
			return c.writeAgain(ctx, s)
		}
	}
	c.dead = append(c.dead, all...)
	return nil
}

// newer compares the age of two copies of a record.
func newer(a, b File) int {
	if a.Key != b.Key {
		return cmp.Compare(a.Key, b.Key)
	}
	return cmp.Compare(a.Moved, b.Moved)
}

// hasBytes reports whether there are bytes where a record says, or leftovers that may belong to
// it.
func (c *Check) hasBytes(ctx context.Context, f File) (bool, error) {
	_, err := c.measure(ctx, f, true, nil)
	if err != nil &&
		!errors.Is(err, blob.ErrNotFound) &&
		(!c.Blobs.Local() || ctx.Err() != nil) {
		return false, fault.Wrap(err, "looking for the bytes of a link")
	}
	return !errors.Is(err, blob.ErrNotFound) ||
		slices.ContainsFunc(c.left, func(l *leftover) bool {
			return l.Owner == f.Owner && l.ID == f.ID && l.Length == f.Length
		}), nil
}

// writeAgain reports a lost record. A repair writes it from a link's copy, and then rewrites the
// file's other links. It writes nothing if the link or the records have changed meanwhile.
func (c *Check) writeAgain(ctx context.Context, s stray) error {
	f := *s.bad.Copy
	elsewhere := f
	elsewhere.Area = map[blob.Area]blob.Area{
		blob.Files:  blob.Backup,
		blob.Backup: blob.Files,
	}[f.Area]
	bad := Finding{
		Kind: BadRecord,
		User: f.Owner,
		ID:   f.ID,
		Key:  f.key().PK,
		What: "the record is missing; a link has a copy, from which --repair writes it again",
		Mend: []table.Op{
			f.put().If(table.NotExists()),
			table.Check(elsewhere.key(), table.NotExists()),
			s.bad.Still,
		},
	}
	if _, err := c.found(ctx, bad); err != nil {
		return err
	}
	if !c.Repair {
		c.holding(f.Owner).unsure = true
		for _, l := range c.left { // not leftovers, as long as the record can be written again
			l.back = l.back || l.Owner == f.Owner && l.ID == f.ID
		}
		return nil
	}
	return c.file(ctx, f)
}

// countDead notes which dead links belong to removed users, and counts the others.
func (c *Check) countDead(ctx context.Context) (n int, err error) {
	for i, s := range c.dead {
		var of owner
		if s.of.Owner != "" { // a damaged link has no owner
			of, err = c.sweeper.owner(ctx, s.of.Owner)
		}
		if err != nil {
			return n, err
		}
		c.dead[i].removed = of.removed
		if !of.removed {
			n++
		}
	}
	return n, nil
}

// removeLinks reports the links that lead to nothing; a repair sets them aside, unless there are
// too many leftovers.
func (c *Check) removeLinks(ctx context.Context) error {
	for _, s := range c.dead {
		if c.tooMany(s.removed) {
			s.bad.Mend = nil
		}
		if _, err := c.found(ctx, s.bad); err != nil {
			return err
		}
	}
	return nil
}
