package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
)

const (
	// A change link from forget expires after 15 minutes or 5 wrong PINs.
	forgetLife = 15 * time.Minute
	maxTries   = 5
	// A change link from first access needs no PIN: the temporary password was enough.
	firstLife = time.Hour
	// InviteLife is how long the link in an invitation works. It needs no PIN either: the mail
	// itself proves who the user is.
	InviteLife = 7 * day

	day = 24 * time.Hour
)

// Outbox makes the notices about a user's password. Its operations belong in the
// transaction that changes the password.
type Outbox interface {
	// PIN mails a user the PIN and the change link of a nonce, unless these expire before the
	// mail is sent. base is the service's address, and lang the mail's language.
	PIN(ctx context.Context, u User, nonce, base, lang string, expires time.Time) table.Op
	// Invite mails a new user the change link of a nonce, unless the link expires before the mail
	// is sent. An empty base is the address of the service that sends the mail.
	Invite(ctx context.Context, u User, nonce, base string, expires time.Time) table.Op
	// PasswordChanged reports a new password to programs that listen. how is first-access if it
	// replaces a temporary one, forgotten if it was set with a PIN, and changed if the old one
	// was known. generation is the user's before the change.
	PasswordChanged(ctx context.Context, user, how string, generation int64) []table.Op
}

// change is what a change token allows, stored under the token's hash.
type change struct {
	V       int64  `json:"v"`
	User    string `json:"user"`
	Expires int64  `json:"expires"` // Unix seconds
	// PIN is the hash of the PIN that the token needs; empty for a token from first access or of
	// an invitation. It is hashed as slowly as a password, so that nobody can guess the 8 digits.
	PIN   string `json:"pin,omitempty"`
	Tries int64  `json:"tries"`
	// Generation is the user's when the token was made. A later change of the
	// password invalidates the token.
	Generation int64 `json:"generation"`
}

func changeKey(token string) table.Key {
	return table.Key{PK: "change#" + keys.HashToken(token), SK: "change"}
}

// First returns a change token for a user in first access, and a Forbidden fault for
// other users. It makes one call to the table.
func (s *Service) First(ctx context.Context, u User) (token string, err error) {
	if u.State != FirstAccess {
		return "", fault.New(fault.Forbidden, "the user is not in first access")
	}
	if token, err = keys.RandomToken(s.Random); err != nil {
		return "", err
	}
	put := newChange(u, token, "", s.Now().Add(firstLife))
	return token, fault.Wrap(s.Table.Write(ctx, put), "storing a change token")
}

// Invite mails a user in first access a link to choose a password, instead of the temporary one.
// base is the service's address; if it is empty, that of the service that sends the mail. It
// makes one call to the table.
func (s *Service) Invite(ctx context.Context, u User, base string) error {
	nonce, err := s.Key.Nonce(s.Random)
	if err != nil {
		return err
	}
	expires := s.Now().Add(InviteLife)
	put := newChange(u, s.Key.Change(nonce), "", expires)
	return fault.Wrap(
		s.Table.Write(ctx, put, s.Outbox.Invite(ctx, u, nonce, base, expires)),
		"storing an invitation",
	)
}

// newChange returns the operation that stores what a token allows.
func newChange(u User, token, pin string, expires time.Time) table.Op {
	c := change{
		V:          table.Format,
		User:       u.Name,
		Expires:    expires.Unix(),
		PIN:        pin,
		Generation: u.Generation,
	}
	return table.Put(changeKey(token), c).Expire(expires)
}

// Change is a request to use a change token.
type Change struct {
	Token    string
	PIN      string // may be empty
	Password string // if empty, only the token and the PIN are checked
}

// Change sets a new password, ends all bearers of the user, and makes the user active.
// Without a new password it only checks the request. It returns the user's name.
func (s *Service) Change(ctx context.Context, c Change) (user string, err error) {
	caller := fault.CallerOf(ctx)
	caller.Login = "pin"
	found, err := s.token(ctx, c.Token)
	if err != nil {
		return "", err
	}
	caller.User = found.User
	if c.Password != "" {
		if err := CheckPassword(c.Password, found.User); err != nil {
			return "", err
		}
	}
	if err := s.checkPIN(ctx, c, found); err != nil {
		return "", err
	}
	caller.Accept(found.User)
	if c.Password == "" {
		return found.User, s.current(ctx, found)
	}
	how := "first-access"
	if found.PIN != "" {
		how = "forgotten"
	}
	ops, err := s.replace(ctx, found.User, c.Password, how, found.Generation)
	if err != nil {
		return "", err
	}
	err = s.Table.Write(ctx, append(ops, table.Delete(changeKey(c.Token)).
		If(table.Exists()))...)
	if errors.Is(err, table.ErrCondition) {
		return "", errDead
	}
	return found.User, fault.Wrap(err, "storing a new password")
}

// ChangePassword gives a user who is logged in a new password, and ends all bearers and tokens. The
// fault is Conflict if the user was changed meanwhile.
func (s *Service) ChangePassword(ctx context.Context, u User, password string) error {
	if err := CheckPassword(password, u.Name); err != nil {
		return err
	}
	ops, err := s.replace(ctx, u.Name, password, "changed", u.Generation)
	if err != nil {
		return err
	}
	return s.Write(ctx, ops...)
}

// replace returns the operations that give a user a new password and report it, unless the user is
// no longer of the generation. how is as in Outbox.PasswordChanged.
func (s *Service) replace(
	ctx context.Context,
	user, password, how string,
	generation int64,
) ([]table.Op, error) {
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return nil, err
	}
	set := setPassword(user, hash, Active).If(table.Equal("generation", generation))
	return append(s.Outbox.PasswordChanged(ctx, user, how, generation), set), nil
}

func (s *Service) token(ctx context.Context, token string) (change, error) {
	var c change
	err := s.Table.Get(ctx, changeKey(token), &c)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return change{}, fmt.Errorf("reading a change token: %w", err)
	}
	life := forgetLife
	if c.PIN == "" {
		life = InviteLife // the longest without a PIN
	}
	if err != nil || table.Ended(s.Now(), c.Expires, life) || c.Tries >= maxTries {
		return change{}, errDead
	}
	return c, nil
}

// current returns an error if the password was chosen since the token was made. For a token that
// needs a PIN it returns nil: nobody may learn without the PIN whether the user exists.
func (s *Service) current(ctx context.Context, c change) error {
	if c.PIN != "" {
		return nil
	}
	u, err := s.Get(ctx, c.User)
	if errors.Is(err, ErrUnknown) || err == nil && u.Generation != c.Generation {
		return errDead
	}
	return err
}

var errDead = fault.New(fault.Unauthorized,
	"the change link is unknown, used or expired; ask for a new one")

// checkPIN counts the try before it compares, so that concurrent tries are limited too.
// If the PIN was right, it takes the count back.
func (s *Service) checkPIN(ctx context.Context, c Change, found change) error {
	if found.PIN == "" {
		return nil
	}
	if c.PIN == "" {
		return fault.New(
			fault.Forbidden, "the user is not in first access: the PIN from the mail is needed",
		)
	}
	count := table.Update(changeKey(c.Token))
	err := s.Table.Write(ctx, count.Add("tries", 1).
		If(table.Exists(), table.AtMost("tries", maxTries-1)))
	if errors.Is(err, table.ErrCondition) {
		return errDead
	}
	if err != nil {
		return fmt.Errorf("counting a PIN: %w", err)
	}
	ok, err := s.Hasher.Verify(ctx, found.PIN, c.PIN)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.Unauthorized, "the PIN is wrong; a link allows %d tries",
			maxTries)
	}
	if c.Password != "" {
		return nil // the token is deleted anyway
	}
	err = s.Table.Write(ctx, count.Add("tries", -1).If(table.Exists()))
	return fault.Wrap(err, "counting a PIN", table.ErrCondition)
}
