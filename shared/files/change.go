package files

import (
	"context"
	"slices"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Edit says what to change about a file. A nil field is left unchanged.
type Edit struct {
	Name   *string
	Expiry *Expiry // counted from now; the zero Expiry stands for the retention
}

// Change changes the name or the expiry of a file in the user area. The file may be moving. If
// the id is unknown, the fault is NotFound. It makes three calls to the table.
func (s *Service) Change(
	ctx context.Context,
	owner users.User,
	id int64,
	e Edit,
) (File, error) {
	f, err := s.Get(ctx, owner, blob.Files, id)
	if err != nil {
		return File{}, err
	}
	return s.Amend(ctx, f, func(now *File) ([]table.Op, error) {
		if e.Name != nil {
			now.Name = *e.Name
		}
		if e.Expiry == nil {
			return nil, nil
		}
		wish := *e.Expiry
		if wish.In > 0 {
			wish = Expiry{At: s.Now().Unix() + wish.In}
		}
		// The retention counts from the upload or, for a restored file, from when it came back.
		now.Expires, err = s.wanted(wish, time.Unix(max(f.Modified/1000, f.Moved), 0), owner)
		return s.missed(*now), err
	})
}

// Amend changes a file's record and its links in place, in one transaction with the operations
// that change returns. change gets the record that will be stored, and is called again if the
// file was changed meanwhile. If the file was moved or removed since f was read, the fault is
// NotFound.
func (s *Service) Amend(
	ctx context.Context,
	f File,
	change func(now *File) ([]table.Op, error),
) (now File, err error) {
	err = s.Retry(ctx, f, func(f File) error {
		now = f
		now.Recipients, now.Changes = slices.Clone(f.Recipients), f.Changes+1
		ops, err := change(&now)
		if err != nil {
			return err
		}
		links, err := s.Links.Replace(ctx, f, &now)
		if err != nil {
			return err
		}
		ops = slices.Concat([]table.Op{now.amended().If(f.Unchanged()...)}, links, ops)
		if len(ops) > table.MaxOps {
			return fault.New(
				fault.Conflict, "too many links to change at once: ask for fewer new ones",
			)
		}
		return s.Table.Write(ctx, ops...)
	})
	return now, fault.Wrap(err, "changing a file's record")
}

// amended returns the operation that changes the record in place. It does not touch the place of
// the bytes, which a mover may change at the same time.
func (f File) amended() table.Op {
	op := table.Update(f.key()).Set("name", f.Name).Set("expires", f.Expires).Set("key", f.Key).
		Set("limited", f.Limited).Set("renewed", f.Renewed).Set("changes", f.Changes)
	if len(f.Recipients) > 0 { // a file with recipients never loses its last one
		op = op.Set("recipients", f.Recipients)
	}
	return op
}
