package files

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ferry/shared/table"
	"ferry/shared/users"
)

// checkTries bounds how often a busy user's quota is recomputed.
const checkTries = 10

// holding is what a scan of the table shows about a user.
type holding struct {
	id     int64      // the highest file id of records, links and sessions
	user   users.User // as the scan shows it
	found  bool       // the user's item is there and readable
	unsure bool       // something that counts towards the quota cannot be read
}

// has notes one of the user's file ids.
func (h *holding) has(id int64) { h.id = max(h.id, id) }

// holding returns what was noted about a user.
func (c *Check) holding(name string) *holding {
	h := c.users[name]
	if h == nil {
		h = &holding{}
		if canonical, ok := users.CanonicalName(name); ok && canonical == name {
			c.users[name] = h
		}
	}
	return h
}

// noteUser notes what an item says about a user. It returns an error for an unreadable item,
// except for a user's own item, which known reports.
func (c *Check) noteUser(item table.Item, kind, name string) error {
	var other struct{}
	switch {
	case item.Key == users.Key(name):
		h := c.holding(name)
		h.found = item.Decode(&h.user) == nil && h.user.Name == name
		return nil
	case kind == table.UserList:
		c.holding(item.Key.SK)
	}
	err := item.Decode(&other)
	if err != nil && item.Key.PK == reservations(name) {
		c.holding(name).unsure = true
	}
	return err
}

// holdings compares each user's item with what the user holds.
func (c *Check) holdings(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.users)) {
		h := c.users[name]
		if !h.found || h.user.LastFile < h.id {
			if err := c.known(ctx, name, h); err != nil {
				return err
			}
		}
		if h.found && h.user.Quota > 0 && !h.unsure {
			if err := c.quota(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// known reports what is wrong with a user.
func (c *Check) known(ctx context.Context, name string, h *holding) error {
	u, err := c.ownerOf(ctx, name)
	if err != nil || u.removed {
		return err
	}
	bad := Finding{Kind: BadUser, User: name, Key: users.Key(name).PK}
	switch {
	case u.lost:
		bad.What = fmt.Sprintf(
			"the user is missing or cannot be read, but was not removed; their files stay: "+
				"restore a backup, or make the user again with ferry user add %s --with-files",
			name,
		)
	case u.LastFile < h.id:
		bad.What = fmt.Sprintf(
			"the last file is %d, but there is a file %d; was an older table restored?", u.LastFile, h.id,
		)
		bad.Mend = []table.Op{table.Update(users.Key(name)).
			Set("lastFile", h.id).
			If(table.AtMost("lastFile", u.LastFile))}
	}
	if bad.What != "" {
		_, err = c.found(ctx, bad)
	}
	return err
}

// quota checks the usage of a user with a quota. A repair first frees lapsed reservations.
func (c *Check) quota(ctx context.Context, name string) error {
	if c.Repair {
		if _, err := c.endReservations(ctx, name, c.Now().Unix()); err != nil {
			return err
		}
	}
	for range checkTries {
		if sure, err := c.compareQuota(ctx, name); sure || err != nil {
			return err
		}
	}
	c.report.Unsure++
	return nil
}

// compareQuota compares a user's usage with the sum of what they hold. It is sure if they match,
// or if nothing changed while it added them up twice.
func (c *Check) compareQuota(ctx context.Context, name string) (sure bool, err error) {
	u, err := c.user(ctx, name)
	if err != nil || u.Quota == 0 {
		return err == nil, err
	}
	sum, err := c.tally(ctx, u)
	if err != nil || sum.used == u.Used {
		return err == nil, err
	}
	twice, err := c.tally(ctx, u)
	if err != nil || twice != sum {
		return false, err
	}
	now, err := c.user(ctx, name)
	if err != nil || now.Used != u.Used || now.LastFile != u.LastFile {
		return false, err
	}
	what := fmt.Sprintf("%d bytes count as used, but files and reservations have %d",
		u.Used, sum.used)
	mend := table.Update(users.Key(name)).Set("used", sum.used).
		If(
			u.SameUse(),
			table.AtMost("lastFile", u.LastFile),
			table.AtMost("generation", u.Generation),
		)
	return c.found(ctx, Finding{
		Kind: BadQuota,
		User: name,
		Key:  users.Key(name).PK,
		What: what,
		Mend: []table.Op{mend},
	})
}
