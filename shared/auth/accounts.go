package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

const (
	// A change link from forget expires after 15 minutes or 5 wrong PINs.
	forgetLife = 15 * time.Minute
	maxTries   = 5
	// A change link from first access needs no PIN: the temporary password was enough.
	firstLife = time.Hour

	maxPerHour = 3
	maxPerDay  = 10
)

// Outbox makes the notices about a user's password. Its operations belong in the
// transaction that changes the password.
type Outbox interface {
	// PIN mails a user the PIN of a nonce, unless the PIN expires before that. base
	// is the service's address, and lang the mail's language.
	PIN(ctx context.Context, u User, nonce, base, lang string, expires time.Time) table.Op
	// PasswordChanged reports a new password to programs that listen. generation is
	// the user's generation before the change.
	PasswordChanged(ctx context.Context, user string, forgotten bool, generation int64) []table.Op
}

// AccountsConfig is what Accounts works with.
type AccountsConfig struct {
	Ports
	// HideUsers makes Forget treat unknown users, disabled ones and those without
	// an address like any other, up to the token they get. Each such request
	// stores two small items for up to a day.
	HideUsers bool
	Outbox    Outbox
}

// Accounts offers the two ways to get a new password: first access for a new user, and
// the link and PIN for a user who forgot it. It is safe for concurrent use.
type Accounts struct{ AccountsConfig }

// NewAccounts returns Accounts.
func NewAccounts(c AccountsConfig) *Accounts { return &Accounts{c} }

// change is what a change token allows, stored under the token's hash.
type change struct {
	V       int64  `json:"v"`
	User    string `json:"user"`
	Expires int64  `json:"expires"` // Unix seconds
	// PIN is the hash of the PIN that the token needs; empty for a token from first
	// access. It is hashed as slowly as a password, or 8 digits could be guessed.
	PIN   string `json:"pin,omitempty"`
	Tries int64  `json:"tries"`
	// Generation is the user's when the token was made. A later change of the
	// password invalidates the token.
	Generation int64 `json:"generation"`
}

func changeKey(token string) table.Key {
	return table.Key{PK: "change#" + HashToken(token), SK: "change"}
}

// First returns a change token for a user in first access, and a Forbidden fault for
// other users. It makes one call to the table.
func (s *Accounts) First(ctx context.Context, u User) (token string, err error) {
	if u.State != FirstAccess {
		return "", envelope.NewFault(envelope.Forbidden, "the user is not in first access")
	}
	token, put, err := s.newChange(u, "", firstLife)
	if err != nil {
		return "", err
	}
	return token, envelope.Wrap(s.Table.Write(ctx, put), "storing a change token")
}

func (s *Accounts) newChange(u User, pin string, life time.Duration) (string, table.Op, error) {
	token, err := RandomToken(s.Random)
	if err != nil {
		return "", table.Op{}, err
	}
	expires := s.Now().Add(life)
	c := change{V: layout, User: u.Name, Expires: expires.Unix(), PIN: pin, Generation: u.Generation}
	return token, table.Put(changeKey(token), c).Expire(expires), nil
}

// Change is a request to use a change token.
type Change struct {
	Token    string
	PIN      string // may be empty
	Password string // if empty, only the token and the PIN are checked
}

// Change sets a new password, ends all bearers of the user, and makes the user active.
// Without a new password it only checks the request. It returns the user's name.
func (s *Accounts) Change(ctx context.Context, c Change) (user string, err error) {
	caller := envelope.CallerOf(ctx)
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
		return found.User, nil
	}
	hash, err := s.Hasher.Hash(ctx, c.Password)
	if err != nil {
		return "", err
	}
	err = s.Table.Write(ctx, append(s.Outbox.PasswordChanged(ctx, found.User, found.PIN != "", found.Generation),
		table.Delete(changeKey(c.Token)).If(table.Exists()),
		SetPassword(found.User, hash, Active).If(table.Equal("generation", found.Generation)),
	)...)
	if errors.Is(err, table.ErrCondition) {
		return "", errDead
	}
	return found.User, envelope.Wrap(err, "storing a new password")
}

func (s *Accounts) token(ctx context.Context, token string) (change, error) {
	var c change
	err := s.Table.Get(ctx, changeKey(token), &c)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return change{}, fmt.Errorf("reading a change token: %w", err)
	}
	life := forgetLife
	if c.PIN == "" {
		life = firstLife
	}
	if err != nil || Ended(s.Now(), c.Expires, life) || c.Tries >= maxTries {
		return change{}, errDead
	}
	return c, nil
}

var errDead = envelope.NewFault(envelope.Unauthorized,
	"the change link is not known, was used, or has expired; ask for a new one")

// checkPIN counts the try before it compares, so that concurrent tries are limited too.
// If the PIN was right, it takes the count back.
func (s *Accounts) checkPIN(ctx context.Context, c Change, found change) error {
	if found.PIN == "" {
		return nil
	}
	if c.PIN == "" {
		return envelope.NewFault(envelope.Forbidden, "the user is not in first access: the PIN from the mail is needed")
	}
	count := table.Update(changeKey(c.Token))
	err := s.Table.Write(ctx, count.Add("tries", 1).If(table.Exists(), table.AtMost("tries", maxTries-1)))
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
		return envelope.NewFault(envelope.Unauthorized, "the PIN is not right; a link takes %d tries", maxTries)
	}
	if c.Password != "" {
		return nil // the token is deleted anyway
	}
	err = s.Table.Write(ctx, count.Add("tries", -1).If(table.Exists()))
	return envelope.Wrap(err, "counting a PIN", table.ErrCondition)
}

// Forget makes a change token and mails the PIN that it needs. base and lang are for
// the mail. It makes two calls to the table.
func (s *Accounts) Forget(ctx context.Context, name, base, lang string) (token, user string, err error) {
	canonical, valid := CanonicalName(name)
	switch {
	case !valid && s.HideUsers: // everyone knows that no user can have this name
		token, err = RandomToken(s.Random)
		return token, name, err
	case !valid:
		return "", "", errUnknown
	}
	for range 3 { // a try fails only if another request for this user comes between
		token, err = s.forget(ctx, canonical, base, lang)
		if !errors.Is(err, table.ErrCondition) {
			return token, canonical, err
		}
	}
	return "", "", table.ErrBusy
}

var errUnknown = envelope.NewFault(envelope.Unauthorized, "the user does not exist")

func (s *Accounts) forget(ctx context.Context, name, base, lang string) (string, error) {
	items, err := s.Table.GetMany(ctx, UserKey(name), requestsKey(name))
	if err != nil {
		return "", fmt.Errorf("reading user: %w", err)
	}
	var r requests
	if err := items[1].Decode(&r); err != nil && !errors.Is(err, table.ErrNotFound) {
		return "", fmt.Errorf("reading a user's requests: %w", err)
	}
	u, err := recipient(items[0])
	if f := envelope.FaultOf(err); f != nil && s.HideUsers {
		// Continue as for other users, but send no mail. No PIN matches this token.
		u, err = User{Name: name, Generation: -1}, nil
	}
	if err != nil {
		return "", err
	}
	count, err := r.next(name, items[1].Found(), s.Now())
	if err != nil {
		return "", err
	}
	return s.storeForget(ctx, u, count, base, lang)
}

// recipient returns the user, or a fault if this user cannot be sent a PIN.
func recipient(item table.Item) (u User, err error) {
	switch err := item.Decode(&u); {
	case errors.Is(err, table.ErrNotFound):
		return u, errUnknown
	case err != nil:
		return u, fmt.Errorf("reading user: %w", err)
	case u.State == Disabled:
		return u, envelope.NewFault(envelope.Forbidden, "the user is disabled")
	case u.Email == "":
		return u, envelope.NewFault(envelope.Forbidden, "the user has no e-mail address that a PIN could go to")
	}
	return u, nil
}

// storeForget stores a change token, and a mail with its PIN if the user has
// an address.
func (s *Accounts) storeForget(ctx context.Context, u User, count table.Op, base, lang string) (string, error) {
	nonce, err := RandomToken(s.Random)
	if err != nil {
		return "", err
	}
	pin, err := s.Hasher.Hash(ctx, s.Key.PIN(nonce))
	if err != nil {
		return "", err
	}
	token, put, err := s.newChange(u, pin, forgetLife)
	if err != nil {
		return "", err
	}
	ops := []table.Op{count, put}
	if u.Email != "" {
		if u.Lang != "" {
			lang = u.Lang // the mail goes to the user, who may not be the caller
		}
		ops = append(ops, s.Outbox.PIN(ctx, u, nonce, base, lang, s.Now().Add(forgetLife)))
	}
	return token, envelope.Wrap(s.Table.Write(ctx, ops...), "storing a change token")
}

// requests keeps the times of a user's forget requests in the last day. A write fails if
// another request has changed it since it was read, so the limits also hold for
// concurrent requests.
type requests struct {
	V       int64   `json:"v"`
	Version int64   `json:"version"`
	Times   []int64 `json:"times"` // Unix seconds, oldest first, at most maxPerDay
}

func requestsKey(name string) table.Key {
	return table.Key{PK: "user#" + name, SK: "forget"}
}

// next returns the operation that adds a request now, or a TooMany fault.
func (r requests) next(name string, found bool, now time.Time) (table.Op, error) {
	day, hour := within(r.Times, now, 24*time.Hour), within(r.Times, now, time.Hour)
	switch {
	case len(day) >= maxPerDay:
		return table.Op{}, tooMany(day[len(day)-maxPerDay], 24*time.Hour, now)
	case len(hour) >= maxPerHour:
		return table.Op{}, tooMany(hour[len(hour)-maxPerHour], time.Hour, now)
	}
	put := table.Put(requestsKey(name), requests{
		V: layout, Version: r.Version + 1, Times: append(day, now.Unix()),
	}).Expire(now.Add(24 * time.Hour))
	if !found {
		return put.If(table.NotExists()), nil
	}
	return put.If(table.Equal("version", r.Version)), nil
}

func tooMany(oldest int64, window time.Duration, now time.Time) error {
	return envelope.WaitFault(time.Unix(oldest, 0).Add(window).Sub(now),
		"at most %d requests an hour and %d a day for a user", maxPerHour, maxPerDay)
}

// within returns a copy of the times, in Unix seconds, that are in the window before now.
func within(times []int64, now time.Time, window time.Duration) []int64 {
	return slices.DeleteFunc(slices.Clone(times), func(at int64) bool {
		return Ended(now, at+int64(window.Seconds()), window)
	})
}
