package links

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// Copy implements files.Links.
func (s *Service) Copy(item table.Item) (f files.File, is bool, err error) {
	if !strings.HasPrefix(item.Key.PK, partition) || item.Key.SK != linkItem {
		return f, false, nil
	}
	l, err := decode(item)
	return l.File, l.Dead == "", err
}

// Compare implements files.Links.
func (s *Service) Compare(
	ctx context.Context,
	f files.File,
	quick, repair bool,
) (all []files.Finding, err error) {
	keys := s.keys(f)
	items, err := s.Table.GetMany(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading a file's links: %w", err)
	}
	for i, item := range items {
		l, err := decode(item)
		bad, unchanged := f.About(
			files.BadLink,
			"a link differs from the record",
		), table.AtMost("downloads", l.Downloads)
		switch {
		case !item.Found() && !f.Expired(s.Now()): // the table may have dropped an expired one
			bad.What, unchanged = "a link is missing", table.NotExists()
		case !item.Found() || err == nil && same(l.File, f):
			continue
		case err != nil && !repair: // Stray reports it
			continue
		case err != nil:
			bad.What = "a link cannot be read"
			l, unchanged = Link{}, table.Exists() // a condition that does not read the item
		case l.Dead != "":
			bad.What = "a link is marked as dead"
		default:
			bad.Copy = &l.File
		}
		bad.Key = keys[i].PK
		if bad.Copy == nil || !quick || l.File.CRC64 == f.CRC64 {
			bad.Mend = s.mend(f, i, l, unchanged)
		}
		all = append(all, bad)
	}
	return all, nil
}

// same reports whether two copies of a record are equal. It ignores what a link's copy may lack:
// the end of a move, or a change of a link's limits.
func same(a, b files.File) bool {
	a.From = nil
	b.From = nil
	a.Limited = b.Limited
	a.Changes = b.Changes
	return reflect.DeepEqual(a, b)
}

// mend returns the operations that rewrite the file's link at this index of keys, if it has not
// changed.
func (s *Service) mend(f files.File, i int, l Link, unchanged table.Cond) []table.Op {
	if l.File.ID == 0 && f.Limited { // its limits are lost
		l.Ended = s.Now().Unix()
	}
	l.Dead = ""
	if i > 0 {
		l.Recipient = f.Recipients[i-1]
	}
	return []table.Op{
		table.Check(files.Key(f.Area, f.Owner, f.ID), f.Unchanged()...),
		s.stored(s.keys(f)[i], l, f).If(unchanged),
	}
}

// Stray implements files.Links.
func (s *Service) Stray(
	ctx context.Context,
	key table.Key,
	of files.File,
) (*files.Finding, error) {
	stays, own, err := s.stays(ctx, key, of)
	if err != nil || own {
		return nil, err
	}
	var now Link
	err = s.Table.Get(ctx, key, &now)
	bad := of.About(files.BadLink, "a link belongs to no file")
	bad.Key = key.PK
	switch {
	case errors.Is(err, table.ErrUnreadable):
		bad.What = "the link cannot be read"
	case errors.Is(err, table.ErrNotFound) || err == nil && now.File.Blob != of.Blob:
		return nil, nil // its file was moved or removed meanwhile
	case err != nil:
		return nil, fmt.Errorf("reading a link: %w", err)
	default:
		alive := []table.Cond{table.Exists(), table.AtMost("deadAt", 0)}
		bad.Still = table.Check(key, alive...)
		bad.Mend = []table.Op{
			table.Check(files.Key(of.Area, of.Owner, of.ID), stays...), table.Delete(key).
				If(alive...),
			table.Put(aside(key), now).Expire(s.Now().AddDate(0, 0, blob.KeptDays)),
		}
		f := now.File.Completed()
		if stays[0].Test == table.TestNotExists && slices.Contains(s.keys(f), key) {
			bad.Copy = &f
		}
	}
	return &bad, nil
}

// aside returns the key under which a link that belonged to no file is kept.
func aside(key table.Key) table.Key { return table.Key{PK: "removed#" + key.PK, SK: key.SK} }

// stays reports whether a link belongs to its file. If not, it also returns the conditions under
// which that remains so. A link of a damaged record counts as belonging to it, because the record
// may be rebuilt from the link.
func (s *Service) stays(
	ctx context.Context,
	key table.Key,
	of files.File,
) (stays []table.Cond, own bool, err error) {
	var item table.Item
	err = s.Table.Get(ctx, files.Key(of.Area, of.Owner, of.ID), &item)
	if errors.Is(err, table.ErrNotFound) {
		return []table.Cond{table.NotExists()}, false, nil
	}
	f, damaged := files.DecodeFile(item)
	own = damaged != nil || slices.Contains(s.keys(f), key)
	return f.Unchanged(), own, fault.Wrap(err, "reading a link's record")
}
