package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// A user with a quota pays with one more call per upload: what the request can
// bring at most is reserved before its bytes are read, so that uploads at once
// cannot pass the quota together, and turned into use by the commit. A reservation has
// an item of its own, so that one left by a crash can be given back.

// reservationLife is longer than any upload may take.
const reservationLife = 24 * time.Hour

type reservationItem struct {
	V       int64 `json:"v"`
	Bytes   int64 `json:"bytes"`
	Expires int64 `json:"expires"` // Unix seconds
}

// reservation is nil for an owner without a quota; its methods know that.
type reservation struct {
	s     *Service
	owner string
	own   bool // the uploader's own
	key   table.Key
	bytes int64
	left  int64 // of bytes, while the body is read
}

func reservations(owner string) string { return "reserved#" + owner }

// reserve does so once per upload, if the owner has a quota. A request that
// does not state its length gets all that is left.
func (u *Upload) reserve(ctx context.Context) error {
	if u.quota != nil || u.target.Quota == 0 {
		return nil
	}
	left := u.target.Quota - u.target.Used
	want := u.max
	if want < 0 {
		want = max(left, 0)
	}
	unique, err := u.s.unique(8)
	if err != nil {
		return err
	}
	r := &reservation{
		s: u.s, owner: u.owner, own: u.own(), bytes: want, left: want,
		key: table.Key{PK: reservations(u.owner), SK: unique},
	}
	expires := u.s.Now().Add(cmp.Or(u.life, reservationLife))
	err = u.s.Table.Write(ctx,
		// The generation tells an owner who is disabled by now, be it to be
		// removed, and a later user of the name.
		table.Update(auth.UserKey(u.owner)).Add("used", want).
			If(table.AtMost("used", u.target.Quota-want), table.Equal("generation", u.target.Generation)),
		table.Put(r.key, reservationItem{V: layout, Bytes: want, Expires: expires.Unix()}),
	)
	if errors.Is(err, table.ErrCondition) {
		return errQuota(r.own, left)
	}
	if err != nil {
		return fmt.Errorf("reserving room: %w", err)
	}
	u.quota = r
	return nil
}

func errQuota(own bool, left int64) error {
	if !own { // another user's room is nobody's business
		return envelope.NewFault(envelope.TooLarge, "the destination user has no room for this")
	}
	return envelope.NewFault(envelope.TooLarge, "this would exceed the quota: %d bytes are left", max(left, 0))
}

// charge is the part of the commit that turns the reservation into use.
func (r *reservation) charge(stored []File) []table.Op {
	if r == nil {
		return nil
	}
	used := int64(0)
	for _, f := range stored {
		used += f.Length
	}
	return r.replaceBy(used)
}

func (r *reservation) replaceBy(used int64) []table.Op {
	return []table.Op{
		table.Delete(r.key).If(table.Exists()),
		table.Update(auth.UserKey(r.owner)).Add("used", used-r.bytes).If(table.Exists()),
	}
}

// cancel gives the reservation back; if that fails, expireReservations will.
func (r *reservation) cancel(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = r.s.Table.Write(ctx, r.replaceBy(0)...)
}

// release gives back the room of a file that goes for good.
func (s *Service) release(ctx context.Context, f File) ([]table.Op, error) {
	var owner auth.User
	err := s.Table.Get(ctx, auth.UserKey(f.Owner), &owner)
	switch {
	case errors.Is(err, table.ErrNotFound), err == nil && (owner.Quota == 0 || owner.Incarnation > f.Incarnation):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading user: %w", err)
	}
	return []table.Op{table.Update(auth.UserKey(f.Owner)).Add("used", -f.Length).
		If(table.Exists(), table.AtMost("incarnation", f.Incarnation))}, nil
}

// endReservations gives back what crashed uploads of a user had reserved, if it
// expires until then. The commit of an upload whose reservation is gone is refused.
func (s *Service) endReservations(ctx context.Context, owner string, until int64) error {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: reservations(owner), Limit: PageSize}) {
		var r reservationItem
		if err == nil {
			err = item.Decode(&r)
		}
		if err != nil {
			return fmt.Errorf("listing reservations: %w", err)
		}
		if until < r.Expires {
			continue
		}
		old := reservation{s: s, owner: owner, key: item.Key, bytes: r.Bytes}
		if err := s.Table.Write(ctx, old.replaceBy(0)...); err != nil && !errors.Is(err, table.ErrCondition) {
			return fmt.Errorf("giving back a reservation: %w", err)
		}
	}
	return nil
}
