package identity

import (
	"context"
	"fmt"
	"io"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Passwords is the Provider of names with passwords, whether in a header or in a form. It is safe for
// concurrent use.
type Passwords struct {
	limit.Limiter
	Users  *users.Service
	Hasher *users.Hasher
	Random io.Reader
}

var errTemporary = fault.New(fault.Unauthorized,
	"this is a temporary password: choose your own with POST /auth/first")

// Identify implements Provider. It makes one call to the table, and one more if a password is wrong.
func (p *Passwords) Identify(ctx context.Context, c Credential) (Identity, error) {
	u, err := p.User(ctx, c)
	if err == nil && u.State != users.Active {
		u, err = users.User{}, errTemporary
	}
	return Identity{User: u, Scope: ScopeAccount}, err
}

// User returns the user whose password it is, which may be the temporary one of a user in first
// access. It makes as many calls as Identify.
func (p *Passwords) User(ctx context.Context, c Credential) (users.User, error) {
	u, _, err := p.verify(ctx, c)
	return u, err
}

// verify checks a name and a password. The user may be in first access, but not disabled.
// hadFailures reports that failed tries are on record, which Login clears. It makes one call to
// the table, one more if the password is wrong, and one more for each wrong password that is
// tried meanwhile.
func (p *Passwords) verify(
	ctx context.Context,
	c Credential,
) (u users.User, hadFailures bool, err error) {
	if c.Kind != Basic && c.Kind != Form {
		return u, false, c.unexpected()
	}
	caller := fault.CallerOf(ctx)
	caller.Login = "password"
	if c.Kind == Basic {
		caller.Login = "basic"
	}
	g := limit.Guess{Source: c.Source, Wrong: errDenied}
	if name, valid := users.CanonicalName(c.Name); valid { // else there is no such user, but the source must wait
		g.Of, g.Also = ofUser(name), []table.Key{users.Key(name)}
	}
	hadFailures, err = p.check(ctx, g, c.Password, func(items []table.Item) (string, error) {
		for _, item := range items {
			err := fault.Wrap(item.Decode(&u), "reading user", table.ErrNotFound)
			if err != nil {
				return "", err
			}
		}
		caller.User = u.Name
		if u.State == users.Disabled {
			return "", nil
		}
		return u.Password, nil
	})
	if err != nil {
		return users.User{}, false, err
	}
	caller.Accept(u.Name)
	return u, hadFailures, nil
}

func ofUser(name string) string { return "user#" + name }

// check makes a guess at a password. hash finds the right one's hash in the items that are read with
// the guess.
func (p *Passwords) check(
	ctx context.Context, g limit.Guess, password string, hash func([]table.Item) (string, error),
) (hadFailures bool, err error) {
	g.AtOnce = p.Hasher.AtOnce()
	g.Mark = p.Hasher.Mark(g.Of, password)
	g.Right = func(items []table.Item) (bool, error) {
		stored, err := hash(items)
		if err != nil {
			return false, err
		}
		right, err := p.Hasher.Verify(ctx, stored, password)
		return right, fault.Wrap(err, "verifying a password")
	}
	return p.Check(ctx, g)
}

var errWrong = fault.New(fault.Unauthorized, "the password is wrong")

// CheckOther checks the password of something other than a user, such as a link; id names it.
// Failed tries are limited like those of logins. It makes one call to the table, and one more if
// the password is wrong.
func (p *Passwords) CheckOther(ctx context.Context, id, hash, password, source string) error {
	g := limit.Guess{Source: source, Of: id, Wrong: errWrong}
	_, err := p.check(ctx, g, password, func([]table.Item) (string, error) { return hash, nil })
	return err
}

// Login checks a name and a password and makes a bearer. It makes two calls to
// the table, and a third when the hash is renewed with stronger parameters.
func (p *Passwords) Login(
	ctx context.Context,
	c Credential,
) (u users.User, bearer string, err error) {
	u, hadFailures, err := p.verify(ctx, c)
	if err != nil {
		return users.User{}, "", err
	}
	if u.State != users.Active {
		return users.User{}, "", errTemporary
	}
	bearer, err = keys.RandomTokenFor(p.Random, u.Name)
	if err != nil {
		return users.User{}, "", err
	}
	return u, bearer, p.loggedIn(ctx, u, c, hadFailures, putBearer(bearer, u, p.Now()))
}

// LoginFirst is Login for a page, which keeps its login as an API token, so it makes no bearer.
// It also accepts the temporary password of a user in first access, which changes nothing. It
// makes one call to the table, a second if failed tries are on record, and one more when the hash
// is renewed.
func (p *Passwords) LoginFirst(ctx context.Context, c Credential) (users.User, error) {
	u, hadFailures, err := p.verify(ctx, c)
	if err != nil || u.State != users.Active {
		return u, err
	}
	return u, p.loggedIn(ctx, u, c, hadFailures)
}

// loggedIn stores what a login makes, clears the failed tries before it, and renews a weak hash.
func (p *Passwords) loggedIn(
	ctx context.Context, u users.User, c Credential, hadFailures bool, ops ...table.Op,
) error {
	if hadFailures {
		ops = append(ops, limit.Forget(ofUser(u.Name), c.Source))
	}
	if len(ops) > 0 {
		if err := p.Table.Write(ctx, ops...); err != nil {
			return fmt.Errorf("storing a login: %w", err)
		}
	}
	if !p.Hasher.Outdated(u.Password) {
		return nil
	}
	hash, err := p.Hasher.Hash(ctx, c.Password)
	if err != nil {
		return err
	}
	return p.Users.Rehash(ctx, u.Name, u.Password, hash)
}
