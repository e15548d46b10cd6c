package files

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

// The commit of an upload counts its files as used only if they fit the quota, so
// that concurrent uploads cannot exceed it together. An upload reserves nothing
// before that: a slow one would keep the room from all others. A session, which its
// owner can see and end, does reserve its room. Each reservation is an item, so that
// one left by a crash can be given back.

// sessionHold is how long a session's reservation lasts. It is renewed while parts are
// requested, so an abandoned session soon holds nothing.
const sessionHold = time.Hour

type reservationItem struct {
	V       int64 `json:"v"`
	Bytes   int64 `json:"bytes"`
	Expires int64 `json:"expires"` // Unix seconds
}

// reservation is nil for an owner without a quota; its method accepts that.
type reservation struct {
	owner string
	key   table.Key
	bytes int64
}

func reservations(owner string) string { return "reserved#" + owner }

// checkRoom refuses a request that brings more than the owner has room for. It makes
// a call only if the length is not stated or does not fit.
func (u *Upload) checkRoom(ctx context.Context) error {
	if u.max < 0 || u.max > u.room() && u.max <= u.target.Quota {
		freed, err := u.s.endReservations(ctx, u.owner, u.s.Now().Unix())
		if err != nil {
			return err
		}
		u.target.Used -= freed
	}
	u.left = max(u.room(), 0)
	if u.max > u.left {
		return errQuota(u.own(), u.left)
	}
	return nil
}

// room returns how much room the owner had when the last id was taken.
func (u *Upload) room() int64 { return u.target.Quota - u.target.Used }

// use returns the operation that counts the stored files as used. It is refused if
// they do not fit, or if the owner is no longer the same.
func (u *Upload) use() []table.Op {
	bytes := int64(0)
	for _, f := range u.stored {
		bytes += f.Length
	}
	return u.s.charge(u.target, u.read, bytes,
		table.AtMost(
			"used",
			u.target.Quota-bytes,
		), table.AtMost("incarnation", u.maxIncarnation))
}

// charge returns the operation that counts bytes of an owner as used, under these conditions. If the
// owner had no quota when read, it only checks that there still is none: a new quota must not miss
// an uncounted change. In a table that processes share the check would cost every upload two write
// units, so quick uploads skip it.
func (s *Service) charge(
	owner users.User,
	read time.Time,
	bytes int64,
	conds ...table.Cond,
) []table.Op {
	switch {
	case owner.Quota > 0:
		return []table.Op{table.Update(users.Key(owner.Name)).
			Add("used", bytes).
			If(table.Exists()).
			If(conds...)}
	case s.Shared && s.Now().Sub(read) < time.Second:
		return nil
	}
	return []table.Op{table.Check(users.Key(owner.Name), table.AtMost("quota", 0))}
}

// reserve makes the reservation of a session.
func (u *Upload) reserve(ctx context.Context) error {
	unique, err := keys.RandomID(u.s.Random, 8)
	if err != nil {
		return err
	}
	r := &reservation{
		owner: u.owner,
		key:   table.Key{PK: reservations(u.owner), SK: unique},
		bytes: u.max,
	}
	freed, err := u.s.take(ctx, u.target, r, u.s.Now().Add(sessionHold))
	if errors.Is(err, table.ErrCondition) {
		return errQuota(u.own(), u.room()+freed)
	}
	if err == nil {
		u.reserved = r
	}
	return fault.Wrap(err, "reserving room")
}

// take makes a reservation, together with other operations. If there is no room, it
// first gives back what has lapsed, and returns how much that was. It returns
// table.ErrCondition if there is still no room.
func (s *Service) take(
	ctx context.Context, owner users.User, r *reservation, until time.Time, with ...table.Op,
) (freed int64, err error) {
	ops := append([]table.Op{
		table.Put(r.key, reservationItem{
			V:       table.Format,
			Bytes:   r.bytes,
			Expires: until.Unix(),
		}).If(table.NotExists()),
		// The generation shows whether the owner was disabled or replaced meanwhile.
		table.Update(users.Key(r.owner)).Add("used", r.bytes).
			If(
				table.AtMost("used", owner.Quota-r.bytes),
				table.Equal("generation", owner.Generation),
			),
	}, with...)
	if r.bytes > owner.Quota {
		return 0, table.ErrCondition
	}
	err = s.Table.Write(ctx, ops...)
	if !errors.Is(err, table.ErrCondition) {
		return 0, err
	}
	freed, failed := s.endReservations(ctx, r.owner, s.Now().Unix())
	if failed != nil {
		return 0, failed
	}
	if freed > 0 {
		err = s.Table.Write(ctx, ops...)
	}
	return freed, err
}

func errQuota(own bool, left int64) error {
	if !own { // how much room another user has is private
		return fault.New(fault.TooLarge, "the destination user has no room for this")
	}
	return fault.New(fault.TooLarge, "this would exceed the quota: %d bytes are left",
		max(left, 0))
}

// charge returns the operations that replace the reservation with a charge for a file of this
// length; 0 gives it back.
func (r *reservation) charge(used int64) []table.Op {
	if r == nil {
		return nil
	}
	return []table.Op{
		table.Delete(r.key).If(table.Exists()),
		table.Update(users.Key(r.owner)).Add("used", used-r.bytes).If(table.Exists()),
	}
}

// Used returns the bytes of an owner's files in both areas and of the reservations. It
// reads all of the owner's records, for a user who gets a quota.
func (s *Service) Used(ctx context.Context, owner users.User) (int64, error) {
	t, err := s.tally(ctx, owner)
	return t.used, err
}

// tally is what an owner's files and reservations hold, and a hash that identifies them. Each
// change of a file gives its bytes a new key, so two equal tallies in a row show that nothing
// has changed between them.
type tally struct {
	used int64
	hash uint64
}

func (s *Service) tally(ctx context.Context, owner users.User) (t tally, err error) {
	which := fnv.New64a()
	name := owner.Name
	for _, pk := range []string{partition(blob.Files, name), partition(blob.Backup, name), reservations(name)} {
		for item, err := range table.Each(ctx, s.Table, table.Query{PK: pk}) {
			var held struct {
				reservationItem
				Length      int64  `json:"length"`
				Incarnation int64  `json:"incarnation"`
				Blob        string `json:"blob"`
			}
			if err == nil {
				err = fault.Wrap(
					item.Decode(&held),
					"the item "+item.Key.String()+" is damaged; see ferry check",
				)
			}
			if err != nil {
				return t, fmt.Errorf("adding up files: %w", err)
			}
			fmt.Fprintln(which, item.Key, held.Bytes, held.Blob)
			t.used += held.Bytes
			if held.Incarnation == owner.Incarnation {
				t.used += held.Length
			}
		}
	}
	t.hash = which.Sum64()
	return t, nil
}

// freeRoom returns the operation that gives back the room of a purged file.
func (s *Service) freeRoom(ctx context.Context, f File) ([]table.Op, error) {
	owner, err := s.user(ctx, f.Owner)
	if err != nil || owner.Incarnation > f.Incarnation {
		return nil, err
	}
	owner.Name = f.Owner // there may be none
	return s.charge(owner, s.Now(), -f.Length, table.AtMost("incarnation", f.Incarnation)), nil
}

// endReservations gives back an owner's reservations that expire by the given
// time, and returns how many bytes they held. Idle sessions leave them behind.
func (s *Service) endReservations(
	ctx context.Context,
	owner string,
	until int64,
) (freed int64, err error) {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: reservations(owner), Limit: PageSize}) {
		var r reservationItem
		if err != nil {
			return freed, fmt.Errorf("listing reservations: %w", err)
		}
		bad := item.Decode(&r)
		if bad != nil {
			s.unreadable(ctx, item.Key, bad)
		}
		left := r.Expires - until
		if bad != nil && until < math.MaxInt64 ||
			left > 0 && left <= int64((sessionHold+table.Skew).Seconds()) {
			continue // more left than that comes from a clock that ran ahead
		}
		old := &reservation{owner: owner, key: item.Key, bytes: r.Bytes}
		ops := old.charge(0)
		ops[0] = ops[0].If(table.Equal("expires", r.Expires)) // it may have just been renewed
		if bad != nil {
			ops = []table.Op{table.Delete(item.Key)}
		}
		err = s.Table.Write(ctx, ops...)
		if err == nil {
			freed += r.Bytes
		} else if !errors.Is(err, table.ErrCondition) {
			return freed, fmt.Errorf("giving back a reservation: %w", err)
		}
	}
	return freed, nil
}
