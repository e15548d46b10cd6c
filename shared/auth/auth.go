// Package auth checks who calls: users, HTTP Basic, bearers, the tokens of links, and
// the limits on guessing; the same code in the cloud and on one machine. Notices go
// through the Outbox that it declares. Start reading with Authenticator.
package auth

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
)

// Lifetime is how long a bearer is valid.
const Lifetime = 3600 * time.Second

// Skew is how far the clocks of two processes may differ. A time further ahead than the longest
// wait plus Skew was stored by a wrong clock, and counts as past.
const Skew = time.Minute

// Ended reports whether a time, stored as Unix seconds, is past, or further ahead than a wait of
// at most life can be.
func Ended(now time.Time, expires int64, life time.Duration) bool {
	left := time.Unix(expires, 0).Sub(now)
	return left <= 0 || left > life+Skew
}

// Ports are what every domain needs. A function that makes no links has no Key. Code that checks
// passwords needs a Hasher and a Throttle.
type Ports struct {
	Table    table.Table
	Key      keys.LinkKey
	Hasher   *Hasher
	Throttle *Throttle
	Random   io.Reader
	Now      func() time.Time
}

// Users returns the users' accounts.
func (p Ports) Users() *Users { return NewUsers(p.Table, p.Now) }

// Authenticator checks credentials. It is safe for concurrent use.
type Authenticator struct{ Ports }

// New returns an Authenticator.
func New(p Ports) *Authenticator { return &Authenticator{p} }

// errDenied answers every bad credential, so that nobody can tell a wrong password
// from an unknown user.
var errDenied = fault.New(fault.Unauthorized, "the user does not exist or the credential is not valid")

var errTemporary = fault.New(fault.Unauthorized,
	"this is a temporary password: choose your own with POST /auth/first")

// Check returns the active user that a credential belongs to. It makes one call to the table,
// and one more if a password is wrong, or for an API token once a day.
func (a *Authenticator) Check(ctx context.Context, c Credential) (Identity, error) {
	switch {
	case c.Kind == "bearer" && strings.HasPrefix(c.Bearer, tokenPrefix):
		return a.apiToken(ctx, c.Bearer)
	case c.Kind == "bearer":
		u, err := a.bearer(ctx, c.Bearer)
		return Identity{User: u, Scope: ScopeLogin}, err
	}
	id, err := a.CheckFirst(ctx, c)
	if err == nil && id.State != Active {
		return Identity{}, errTemporary
	}
	return id, err
}

// CheckFirst is Check for passwords alone, but also accepts the temporary one of a user in
// first access.
func (a *Authenticator) CheckFirst(ctx context.Context, c Credential) (Identity, error) {
	u, _, err := a.password(ctx, c)
	return Identity{User: u, Scope: ScopeLogin}, err
}

// password checks a name and a password. The user may be in first access, but not disabled.
// hadFailures reports that failed tries are on record, which Login clears. It makes one call to
// the table, one more if the password is wrong, and one more for each wrong password that is
// tried meanwhile.
func (a *Authenticator) password(ctx context.Context, c Credential) (u User, hadFailures bool, err error) {
	switch c.Kind {
	case "":
		return u, false, fault.New(fault.Unauthorized, "an Authorization header is missing")
	case "basic", "password":
	default:
		return u, false, fault.New(fault.Unauthorized, "the Authorization header is not valid for this address")
	}
	canonical, valid := CanonicalName(c.Name)
	if !valid {
		canonical = "" // there is no such user, but the source must still wait after failures
	}
	t := a.attempt(canonical, c.Source)
	caller := fault.CallerOf(ctx)
	caller.Login = c.Kind
	u, ok, err := t.verify(ctx, canonical, c.Password, func(u User) string {
		caller.User = u.Name
		if u.State == Disabled {
			return ""
		}
		return u.Password
	})
	if ok {
		caller.Accept(u.Name)
	} else if err == nil {
		err = errDenied
	}
	return u, t.pair.found, err
}

// CheckPassword checks the password of something other than a user, such as a link; id names it.
// Failed tries are limited like those of logins. It makes one call to the table, and one more if
// the password is wrong.
func (a *Authenticator) CheckPassword(ctx context.Context, id, hash, password, source string) error {
	_, ok, err := a.attemptOn(id, source).verify(ctx, "", password, func(User) string { return hash })
	if err == nil && !ok {
		err = fault.New(fault.Unauthorized, "the password is wrong")
	}
	return err
}

// Login checks a name and a password and makes a bearer. It makes two calls to
// the table, and a third when the hash is renewed with stronger parameters.
func (a *Authenticator) Login(ctx context.Context, c Credential) (u User, bearer string, err error) {
	u, hadFailures, err := a.password(ctx, c)
	if err != nil {
		return User{}, "", err
	}
	if u.State != Active {
		return User{}, "", errTemporary
	}
	bearer, err = keys.RandomTokenFor(a.Random, u.Name)
	if err != nil {
		return User{}, "", err
	}
	expires := a.Now().Add(Lifetime)
	item := bearerItem{V: table.Format, User: u.Name, Generation: u.Generation, Expires: expires.Unix()}
	return u, bearer, a.loggedIn(ctx, u, c, hadFailures, table.Put(bearerKey(bearer), item).Expire(expires))
}

// LoginFirst is Login for a page, which keeps its login as an API token, so it makes no bearer.
// It also accepts the temporary password of a user in first access, which changes nothing. It
// makes one call to the table, a second if failed tries are on record, and one more when the hash
// is renewed.
func (a *Authenticator) LoginFirst(ctx context.Context, c Credential) (User, error) {
	u, hadFailures, err := a.password(ctx, c)
	if err != nil || u.State != Active {
		return u, err
	}
	return u, a.loggedIn(ctx, u, c, hadFailures)
}

// loggedIn stores what a login makes, clears the failed tries before it, and renews a weak hash.
func (a *Authenticator) loggedIn(ctx context.Context, u User, c Credential, hadFailures bool, ops ...table.Op) error {
	if hadFailures {
		ops = append(ops, table.Delete(a.attempt(u.Name, c.Source).pair.key))
	}
	if len(ops) > 0 {
		if err := a.Table.Write(ctx, ops...); err != nil {
			return fmt.Errorf("storing a login: %w", err)
		}
	}
	if !a.Hasher.Outdated(u.Password) {
		return nil
	}
	hash, err := a.Hasher.Hash(ctx, c.Password)
	if err != nil {
		return err
	}
	return a.Users().Rehash(ctx, u.Name, u.Password, hash)
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

// bearer returns the user of a bearer. The token carries the user's name, so that one
// call to the table fetches both items.
func (a *Authenticator) bearer(ctx context.Context, token string) (User, error) {
	fault.CallerOf(ctx).Login = "bearer"
	name, _ := keys.TokenName(token)
	if canonical, ok := CanonicalName(name); !ok || canonical != name {
		return User{}, errDenied
	}
	var b bearerItem
	return a.holder(ctx, bearerKey(token), name, &b, func(u User) bool {
		return subtle.ConstantTimeCompare([]byte(b.User), []byte(name)) == 1 &&
			!Ended(a.Now(), b.Expires, Lifetime) && b.Generation == u.Generation
	})
}

// holder returns the active user to whom a bearer or a token belongs, in one call to the table.
// valid decides once the item is decoded.
func (a *Authenticator) holder(
	ctx context.Context, key table.Key, name string, item any, valid func(User) bool,
) (u User, err error) {
	items, err := a.Table.GetMany(ctx, key, UserKey(name))
	if err == nil {
		err = items[0].Decode(item)
	}
	if err == nil {
		err = items[1].Decode(&u)
	}
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return User{}, fmt.Errorf("reading a token and its user: %w", err)
	}
	if err != nil || u.State != Active || !valid(u) {
		return User{}, errDenied
	}
	fault.CallerOf(ctx).Accept(u.Name)
	return u, nil
}

// Revoke ends a bearer or an API token. Revoking an unknown or expired one is not an error (RFC
// 7009, section 2.2).
func (a *Authenticator) Revoke(ctx context.Context, token string) error {
	key := bearerKey(token)
	if user, ok := tokenUser(token); ok {
		key = tokenKey(user, token)
	}
	return fault.Wrap(a.Table.Write(ctx, table.Delete(key)), "revoking a bearer")
}
