package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/table"
)

// Remains returns a user as auth.Users.Trace does. For a lost or unreadable user, LastFile is at
// least the id of any record, session or, if there is a store, object, and Generation is above
// that of any bearer. A user whom only such items name counts as lost too.
func (s *Service) Remains(ctx context.Context, name string) (u auth.User, bad error) {
	u, listed, bad := s.Users().Trace(ctx, name)
	unknown := errors.Is(bad, auth.ErrUnknownUser)
	if unknown && listed || !unknown && !errors.Is(bad, auth.ErrDamaged) {
		return u, bad
	}
	for _, pk := range []string{partition(blob.Files, name), partition(blob.Backup, name), sessions(name)} {
		for item, err := range table.Each(ctx, s.Table, table.Query{PK: pk}) {
			if err != nil {
				return u, fmt.Errorf("reading what is left of a user: %w", err)
			}
			var held struct { // a record or a session, or nothing if it cannot be read
				Owner       string `json:"owner"`
				Incarnation int64  `json:"incarnation"`
				FileID      int64  `json:"fileId"`
			}
			_ = item.Decode(&held)
			id, _ := strconv.ParseInt(item.Key.SK, 10, 64)
			if cmp.Or(held.Owner, name) != name {
				continue
			}
			u.LastFile = max(u.LastFile, id, held.FileID)
			if !listed {
				u.Incarnation = max(u.Incarnation, held.Incarnation)
			}
		}
	}
	last, err := s.lastObject(ctx, name)
	// Generations count up from 0 or from a time like this one, so no bearer's is as high.
	u.LastFile, u.Generation = max(u.LastFile, last), max(u.Generation+1, s.Now().Unix())
	if unknown && u.LastFile > 0 {
		bad = auth.Lost(name)
	}
	return u, cmp.Or(err, bad)
}

// lastObject returns the highest id among a user's objects. It lists all objects.
func (s *Service) lastObject(ctx context.Context, name string) (last int64, err error) {
	if s.Blobs == nil {
		return 0, nil
	}
	for o, err := range Objects(ctx, s.Blobs) {
		if err != nil {
			return last, err
		}
		if o.Owner == name {
			last = max(last, o.ID)
		}
	}
	return last, nil
}
