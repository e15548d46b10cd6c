package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

	// The most requests for a forgotten password: per hour from one source, for one user and for
	// all users; per day for one user. maxMails is the most mails to one user in a day.
	maxPerPair, maxPerSource = 3, 20
	maxPerUser, maxMails     = 30, 10

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

// AccountsConfig is what Accounts works with.
type AccountsConfig struct {
	Ports
	// HideUsers makes Forget treat unknown users, disabled ones and those without
	// an address like any other, up to the token they get. Each such request
	// stores two small items for up to a day; a source can make 20 an hour.
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
func (s *Accounts) First(ctx context.Context, u User) (token string, err error) {
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
func (s *Accounts) Invite(ctx context.Context, u User, base string) error {
	nonce, err := s.Key.Nonce(s.Random)
	if err != nil {
		return err
	}
	expires := s.Now().Add(InviteLife)
	put := newChange(u, s.Key.Change(nonce), "", expires)
	return fault.Wrap(s.Table.Write(ctx, put, s.Outbox.Invite(ctx, u, nonce, base, expires)), "storing an invitation")
}

// newChange returns the operation that stores what a token allows.
func newChange(u User, token, pin string, expires time.Time) table.Op {
	c := change{V: table.Format, User: u.Name, Expires: expires.Unix(), PIN: pin, Generation: u.Generation}
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
func (s *Accounts) Change(ctx context.Context, c Change) (user string, err error) {
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
	hash, err := s.Hasher.Hash(ctx, c.Password)
	if err != nil {
		return "", err
	}
	how := "first-access"
	if found.PIN != "" {
		how = "forgotten"
	}
	err = s.Table.Write(ctx, append(s.Outbox.PasswordChanged(ctx, found.User, how, found.Generation),
		table.Delete(changeKey(c.Token)).If(table.Exists()),
		SetPassword(found.User, hash, Active).If(table.Equal("generation", found.Generation)),
	)...)
	if errors.Is(err, table.ErrCondition) {
		return "", errDead
	}
	return found.User, fault.Wrap(err, "storing a new password")
}

// Set gives a user who is logged in a new password, and ends all bearers and tokens. The fault is
// Conflict if the user was changed meanwhile.
func (s *Accounts) Set(ctx context.Context, u User, password string) error {
	if err := CheckPassword(password, u.Name); err != nil {
		return err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.Users().change(ctx, append(s.Outbox.PasswordChanged(ctx, u.Name, "changed", u.Generation),
		SetPassword(u.Name, hash, Active).If(table.Equal("generation", u.Generation)))...)
}

func (s *Accounts) token(ctx context.Context, token string) (change, error) {
	var c change
	err := s.Table.Get(ctx, changeKey(token), &c)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return change{}, fmt.Errorf("reading a change token: %w", err)
	}
	life := forgetLife
	if c.PIN == "" {
		life = InviteLife // the longest without a PIN
	}
	if err != nil || Ended(s.Now(), c.Expires, life) || c.Tries >= maxTries {
		return change{}, errDead
	}
	return c, nil
}

// current returns an error if the password was chosen since the token was made. For a token that
// needs a PIN it returns nil: nobody may learn without the PIN whether the user exists.
func (s *Accounts) current(ctx context.Context, c change) error {
	if c.PIN != "" {
		return nil
	}
	u, err := s.Users().Get(ctx, c.User)
	if errors.Is(err, ErrUnknownUser) || err == nil && u.Generation != c.Generation {
		return errDead
	}
	return err
}

var errDead = fault.New(fault.Unauthorized,
	"the change link is unknown, used or expired; ask for a new one")

// checkPIN counts the try before it compares, so that concurrent tries are limited too.
// If the PIN was right, it takes the count back.
func (s *Accounts) checkPIN(ctx context.Context, c Change, found change) error {
	if found.PIN == "" {
		return nil
	}
	if c.PIN == "" {
		return fault.New(fault.Forbidden, "the user is not in first access: the PIN from the mail is needed")
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
		return fault.New(fault.Unauthorized, "the PIN is wrong; a link allows %d tries", maxTries)
	}
	if c.Password != "" {
		return nil // the token is deleted anyway
	}
	err = s.Table.Write(ctx, count.Add("tries", -1).If(table.Exists()))
	return fault.Wrap(err, "counting a PIN", table.ErrCondition)
}

// Forget makes a change token and mails the PIN that it needs, unless the user was sent 10 PINs
// in the last day. source is the caller's, as from Source; base and lang are for the mail. It
// makes two calls to the table. This process handles one request from a source at a time.
func (s *Accounts) Forget(ctx context.Context, name, source, base, lang string) (token, user string, err error) {
	canonical, valid := CanonicalName(name)
	switch {
	case !valid && s.HideUsers: // everyone knows that no user can have this name
		token, err = keys.RandomToken(s.Random)
		return token, name, err
	case !valid:
		return "", "", errUnknown
	}
	t := &attempt{a: New(s.Ports), source: counter{key: table.Key{PK: "forget#" + source, SK: "source"}, most: 1}}
	t.counters = []*counter{&t.source}
	t.enter()
	defer t.leave()
	if _, err := t.waitForPlace(ctx); err != nil {
		return "", "", err
	}
	f := forgetting{Accounts: s, name: canonical, source: t.source.key, base: base, lang: lang}
	if s.Throttle.unsaved(f.source, s.Now()).Count >= maxPerSource {
		return "", "", table.ErrFull
	}
	for range 3 { // a try fails only if another request for this user or from this source comes in between
		token, err = f.try(ctx)
		if errors.Is(err, table.ErrFull) {
			_ = t.unsaved(err, &t.source)
		}
		if !errors.Is(err, table.ErrCondition) {
			return token, canonical, err
		}
	}
	return "", "", table.ErrBusy
}

var errUnknown = fault.New(fault.Unauthorized, "the user does not exist")

// forgetting is one request for a forgotten password.
type forgetting struct {
	*Accounts
	name, base, lang string
	source           table.Key // of its source's requests
	nonce, hash      string    // what the token and the PIN are derived from, and the slow hash of the PIN
}

func (f *forgetting) try(ctx context.Context) (token string, err error) {
	ofUser := table.Key{PK: "user#" + f.name, SK: "forget"}
	items, err := f.Table.GetMany(ctx, UserKey(f.name), ofUser, f.source)
	if err != nil {
		return "", fmt.Errorf("reading user: %w", err)
	}
	now := f.Now()
	user, err := recent(items[1], now, day)
	source, err2 := recent(items[2], now, time.Hour)
	id := keys.HashToken(f.name)[:8] // a longer text would only take space
	tooMany := cmp.Or(user.limit("", now, maxPerUser), source.limit("", now, maxPerSource), source.limit(id, now, maxPerPair))
	if err := cmp.Or(err, err2, tooMany); err != nil {
		return "", err
	}
	ops := []table.Op{source.add(f.source, now, id)}
	u, failed := recipient(items[0])
	if fault.Of(failed) != nil && f.HideUsers {
		// Continue as for other users, but send no mail. No PIN matches this token.
		u, failed = User{Name: f.name, Generation: -1}, nil
	}
	if failed == nil {
		mailed := ""
		if u.Email != "" && user.limit(mail, now, maxMails) == nil {
			mailed = mail
		}
		var more []table.Op
		token, more, err = f.make(ctx, u, mailed != "")
		ops = append(append(ops, user.add(ofUser, now, mailed)), more...)
	}
	if err == nil {
		err = fault.Wrap(f.Table.Write(ctx, ops...), "storing a request for a forgotten password")
	}
	return token, cmp.Or(err, failed)
}

// recipient returns the user, or a fault if this user cannot be sent a PIN.
func recipient(item table.Item) (u User, err error) {
	switch err := item.Decode(&u); {
	case errors.Is(err, table.ErrNotFound):
		return u, errUnknown
	case err != nil:
		return u, fmt.Errorf("reading user: %w", err)
	case u.State == Disabled:
		return u, fault.New(fault.Forbidden, "the user is disabled")
	case u.Email == "":
		return u, fault.New(fault.Forbidden, "the user has no e-mail address to send a PIN to")
	}
	return u, nil
}

// make returns a change token, and the operations that store it and mail its PIN.
func (f *forgetting) make(ctx context.Context, u User, mailed bool) (token string, ops []table.Op, err error) {
	if f.hash == "" { // it is slow, and another try can use it too
		if f.nonce, err = f.Key.Nonce(f.Random); err != nil {
			return "", nil, err
		}
		if f.hash, err = f.Hasher.Hash(ctx, f.Key.PIN(f.nonce)); err != nil {
			return "", nil, err
		}
	}
	expires := f.Now().Add(forgetLife)
	token = f.Key.Change(f.nonce)
	ops = []table.Op{newChange(u, token, f.hash, expires)}
	if mailed {
		lang := cmp.Or(u.Lang, f.lang) // the mail goes to the user, who may not be the caller
		ops = append(ops, f.Outbox.PIN(ctx, u, f.nonce, f.base, lang, expires))
	}
	return token, ops, nil
}

// requests keeps the times of recent requests for a forgotten password, of a source or
// for a user. A write fails if another request has changed it since it was read, so the
// limits also hold for concurrent requests.
type requests struct {
	V       int64   `json:"v"`
	Version int64   `json:"version"`
	Times   []int64 `json:"times"` // Unix seconds, oldest first
	// Notes has one for each time: for a source, a hash of the user's name; for a user, the text
	// mail if one was sent.
	Notes []string `json:"notes,omitempty"`

	window time.Duration // in which they count
}

const mail = "mail"

// recent returns the requests in an item that still count.
func recent(item table.Item, now time.Time, window time.Duration) (r requests, err error) {
	var all requests
	err = fault.Wrap(item.Decode(&all), "reading requests", table.ErrNotFound)
	r.Version, r.window = all.Version, window
	for i, at := range all.Times {
		if i < len(all.Notes) && !Ended(now, at+int64(window.Seconds()), window) {
			r.Times, r.Notes = append(r.Times, at), append(r.Notes, all.Notes[i])
		}
	}
	return r, err
}

// limit returns a TooMany fault if there are already most requests with this note. An empty note
// matches any.
func (r requests) limit(note string, now time.Time, most int) error {
	for i, at := range slices.Backward(r.Times) {
		if note == "" || r.Notes[i] == note {
			most--
		}
		if most == 0 {
			left := time.Unix(at, 0).Add(r.window).Sub(now)
			return fault.Wait(min(left, r.window), "the limits are %d requests an hour from one address for one user, "+
				"%d an hour from one address in all, and %d a day for one user", maxPerPair, maxPerSource, maxPerUser)
		}
	}
	return nil
}

// add returns the operation that adds a request now.
func (r requests) add(key table.Key, now time.Time, note string) table.Op {
	before := table.Equal("version", r.Version)
	if r.Version == 0 {
		before = table.NotExists()
	}
	r.V, r.Version = table.Format, r.Version+1
	r.Times, r.Notes = append(r.Times, now.Unix()), append(r.Notes, note)
	return table.Put(key, r).Expire(now.Add(r.window)).If(before)
}
