package auth

import (
	"context"
	"crypto/subtle"
	"fmt"

	"ferry/shared/table"
)

// bearerItem is what is kept of a bearer, under its hash.
type bearerItem struct {
	V          int64  `json:"v"`
	User       string `json:"user"`
	Generation int64  `json:"generation"` // of the user when it was made
	Expires    int64  `json:"expires"`    // Unix seconds
}

func bearerKey(token string) table.Key {
	return table.Key{PK: "bearer#" + HashToken(token), SK: "bearer"}
}

// mint makes a bearer and the operation that stores it.
func (a *Authenticator) mint(u User) (string, []table.Op, error) {
	token, err := RandomTokenFor(a.Random, u.Name)
	if err != nil {
		return "", nil, err
	}
	expires := a.Now().Add(Lifetime)
	item := bearerItem{V: layout, User: u.Name, Generation: u.Generation, Expires: expires.Unix()}
	return token, []table.Op{table.Put(bearerKey(token), item).Expire(expires)}, nil
}

// Bearer returns the user of a bearer. The token carries the user's name, so
// that one call to the table fetches both items.
func (a *Authenticator) Bearer(ctx context.Context, token string) (User, error) {
	name, ok := TokenName(token)
	if !ok {
		return User{}, errDenied()
	}
	if canonical, valid := CanonicalName(name); !valid || canonical != name {
		return User{}, errDenied()
	}
	items, err := a.Table.GetMany(ctx, bearerKey(token), UserKey(name))
	if err != nil {
		return User{}, fmt.Errorf("reading a bearer: %w", err)
	}
	var b bearerItem
	var u User
	if !items[0].Found() || !items[1].Found() {
		return User{}, errDenied()
	}
	if err := items[0].Decode(&b); err != nil {
		return User{}, fmt.Errorf("reading a bearer: %w", err)
	}
	if err := items[1].Decode(&u); err != nil {
		return User{}, fmt.Errorf("reading a bearer's user: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(b.User), []byte(name)) != 1 ||
		a.Now().Unix() >= b.Expires || b.Generation != u.Generation || u.State != Active {
		return User{}, errDenied()
	}
	return u, nil
}

// Revoke ends a bearer. One that is unknown or ended is no error (RFC 7009,
// section 2.2).
func (a *Authenticator) Revoke(ctx context.Context, token string) error {
	if err := a.Table.Write(ctx, table.Delete(bearerKey(token))); err != nil {
		return fmt.Errorf("revoking a bearer: %w", err)
	}
	return nil
}
