package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Lifetime is how long a bearer is valid.
const Lifetime = 3600 * time.Second

// Tokens is the Provider of bearers, which logins with a password make, and of API tokens, which it
// also makes, lists and ends. It is safe for concurrent use.
type Tokens struct {
	Table  table.Table
	Users  *users.Service
	Random io.Reader
	Now    func() time.Time
}

// Identify implements Provider. It makes one call to the table, and for an API token once a day one
// more to record the use.
func (s *Tokens) Identify(ctx context.Context, c Credential) (Identity, error) {
	if strings.HasPrefix(c.Bearer, tokenPrefix) {
		return s.apiToken(ctx, c.Bearer)
	}
	u, err := s.bearer(ctx, c.Bearer)
	return Identity{User: u, Scope: ScopeAccount}, err
}

// bearerItem is a bearer as stored, under its hash.
type bearerItem struct {
	V          int64  `json:"v"`
	User       string `json:"user"`
	Generation int64  `json:"generation"` // the user's when the bearer was made
	Expires    int64  `json:"expires"`    // Unix seconds
}

func bearerKey(token string) table.Key {
	return table.Key{PK: "bearer#" + keys.HashToken(token), SK: "bearer"}
}

// putBearer returns the operation that stores a bearer of a user.
func putBearer(token string, u users.User, now time.Time) table.Op {
	expires := now.Add(Lifetime)
	item := bearerItem{
		V:          table.Format,
		User:       u.Name,
		Generation: u.Generation,
		Expires:    expires.Unix(),
	}
	return table.Put(bearerKey(token), item).Expire(expires)
}

// bearer returns the user of a bearer. The token carries the user's name, so that one
// call to the table fetches both items.
func (s *Tokens) bearer(ctx context.Context, token string) (users.User, error) {
	fault.CallerOf(ctx).Login = "bearer"
	name, _ := keys.TokenName(token)
	if canonical, ok := users.CanonicalName(name); !ok || canonical != name {
		return users.User{}, errDenied
	}
	var b bearerItem
	return s.holder(ctx, bearerKey(token), name, &b, func(u users.User) bool {
		return subtle.ConstantTimeCompare([]byte(b.User), []byte(name)) == 1 &&
			!table.Ended(s.Now(), b.Expires, Lifetime) && b.Generation == u.Generation
	})
}

// apiToken returns the identity behind an API token. It makes one call to the table, and at most
// once a day one more to record the use.
func (s *Tokens) apiToken(ctx context.Context, token string) (Identity, error) {
	fault.CallerOf(ctx).Login = "token"
	name, ok := tokenUser(token)
	if !ok {
		return Identity{}, errDenied
	}
	key := tokenKey(name, token)
	var t tokenItem
	u, err := s.holder(ctx, key, name, &t, func(u users.User) bool {
		return t.valid(u, s.Now())
	})
	if err != nil {
		return Identity{}, err
	}
	s.used(ctx, key, t)
	return Identity{User: u, Scope: t.Scope, Token: idOf(key.SK)}, nil
}

func (t tokenItem) valid(u users.User, now time.Time) bool {
	return t.Generation == u.Generation &&
		now.Before(t.Ends().Add(useEvery)) &&
		(t.Expires == 0 || now.Unix() < t.Expires)
}

// used records the use of a token, unless one was recorded in the last day. Of several requests
// at once, one records it. If that fails, the next request retries.
func (s *Tokens) used(ctx context.Context, key table.Key, t tokenItem) {
	now := s.Now()
	if t.Used != 0 && now.Sub(time.Unix(t.Used, 0)) < useEvery {
		return
	}
	before := t.Used
	t.Used = now.Unix()
	_ = s.Table.Write(ctx, table.Update(key).Set("used", t.Used).Expire(t.Ends().Add(useEvery)).
		If(table.Exists(), table.AtMost("used", before)).Relax())
}

// holder returns the active user to whom a bearer or a token belongs, in one call to the table.
// valid decides once the item is decoded.
func (s *Tokens) holder(
	ctx context.Context, key table.Key, name string, item any, valid func(users.User) bool,
) (u users.User, err error) {
	items, err := s.Table.GetMany(ctx, key, users.Key(name))
	if err == nil {
		err = items[0].Decode(item)
	}
	if err == nil {
		err = items[1].Decode(&u)
	}
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return users.User{}, fmt.Errorf("reading a token and its user: %w", err)
	}
	if err != nil || u.State != users.Active || !valid(u) {
		return users.User{}, errDenied
	}
	fault.CallerOf(ctx).Accept(u.Name)
	return u, nil
}

// Revoke ends a bearer or an API token. Revoking an unknown or expired one is not an error (RFC
// 7009, section 2.2).
func (s *Tokens) Revoke(ctx context.Context, token string) error {
	key := bearerKey(token)
	if user, ok := tokenUser(token); ok {
		key = tokenKey(user, token)
	}
	return fault.Wrap(s.Table.Write(ctx, table.Delete(key)), "revoking a bearer")
}
