// Package users keeps the accounts of users: what is stored of each, passwords and their hashes, and
// how a user gets a new password. Notices go through the Outbox that it declares. Start reading with
// User and Service.
package users

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table"
)

// State is the state of an account.
type State string

// The states. A new user is in first access: the temporary password only works for
// POST /auth/first, where the user chooses a password.
const (
	FirstAccess State = "first-access"
	Active      State = "active"
	Disabled    State = "disabled"
)

var (
	// ErrUnknown reports that a user does not exist.
	ErrUnknown = errors.New("there is no user")
	// ErrDamaged reports that a user's item is gone, though nobody removed the user, or that it
	// cannot be read.
	ErrDamaged = errors.New("restore the table from a backup, or use ferry user add --with-files")
)

// Lost returns the error of a user whose item is gone.
func Lost(name string) error {
	return fmt.Errorf("the account of %s is lost: %w", name, ErrDamaged)
}

// MaxName is the longest user name, in bytes.
const MaxName = 64

// User is an account as stored.
type User struct {
	V        int64  `json:"v"`
	Name     string `json:"name"`
	Email    string `json:"email,omitempty"`
	Phone    string `json:"phone,omitempty"` // E.164
	Lang     string `json:"lang,omitempty"`
	State    State  `json:"state"`
	Before   State  `json:"before,omitempty"` // a disabled user's state before that
	Password string `json:"password"`         // PHC string
	// Generation goes up with each change that ends all bearers: a bearer is
	// only good for the generation it was made in.
	Generation int64 `json:"generation"`
	// LastFile is the highest file id given out. Ids are never reused, not
	// even for a later user of the same name.
	LastFile int64 `json:"lastFile"`
	// Incarnation counts the earlier users of the name. Each file belongs to one
	// incarnation, so that later users do not get the files of earlier ones.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Quota limits Used, the bytes held and reserved in both areas; 0 is no limit.
	Quota      int64 `json:"quota,omitempty"`
	Used       int64 `json:"used,omitempty"`
	KeepDays   int64 `json:"keepDays,omitempty"`   // in the user area; 0 is the service's default
	BackupDays int64 `json:"backupDays,omitempty"` // in the backup area; 0 is the service's default
	Created    int64 `json:"created"`              // Unix seconds
}

// SameUse returns the condition that Used has not changed since it was read.
func (u User) SameUse() table.Cond {
	if u.Used == 0 { // a zero may be missing
		return table.AtMost("used", 0)
	}
	return table.Equal("used", u.Used)
}

// CanonicalName returns a name as it is stored, in lower case. ok is false if no user
// can have that name.
func CanonicalName(name string) (canonical string, ok bool) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789._-@+"
	name = strings.ToLower(name)
	if name == "" ||
		len(name) > MaxName ||
		name[0] == '.' ||
		strings.Trim(name, letters) != "" {
		return "", false
	}
	return name, true
}

// Key returns the key of the user with a canonical name.
func Key(name string) table.Key { return table.Key{PK: "user#" + name, SK: "profile"} }

// quotaList is the partition that lists the users who have a quota, or had one.
const quotaList = "limited"

func addToQuotaList(name string) table.Op {
	return table.Put(table.Key{PK: quotaList, SK: name}, indexEntry{V: table.Format})
}

type indexEntry struct {
	V           int64 `json:"v"`
	Removed     bool  `json:"removed,omitempty"`
	LastFile    int64 `json:"lastFile,omitempty"`
	Generation  int64 `json:"generation,omitempty"`
	Incarnation int64 `json:"incarnation,omitempty"`
}

// listEntry returns the operation that stores a user's entry in the list of users.
func listEntry(u User, removed bool) table.Op {
	return table.Put(table.Key{PK: table.UserList, SK: u.Name}, indexEntry{
		V:           table.Format,
		Removed:     removed,
		LastFile:    u.LastFile,
		Generation:  u.Generation,
		Incarnation: u.Incarnation,
	})
}

// Service reads and changes accounts, for which it needs only Table and Now. It also offers the two
// ways to get a new password: first access for a new user, and the link and PIN for a user who
// forgot it. It is safe for concurrent use.
type Service struct {
	Table  table.Table
	Now    func() time.Time
	Key    keys.LinkKey
	Hasher *Hasher
	Tries  *limit.Tries // for Forget
	Random io.Reader
	Outbox Outbox
	// HideUsers makes Forget treat unknown users, disabled ones and those without
	// an address like any other, up to the token they get. Each such request
	// stores two small items for up to a day; a source can make 20 an hour.
	HideUsers bool
}

// Get returns the user with a canonical name, or ErrUnknown.
func (s *Service) Get(ctx context.Context, name string) (User, error) {
	var u User
	err := s.Table.Get(ctx, Key(name), &u)
	if errors.Is(err, table.ErrNotFound) {
		return User{}, ErrUnknown
	}
	return u, fault.Wrap(err, "reading user")
}

// Trace returns the user with a canonical name. If the error is ErrUnknown or ErrDamaged,
// it returns the counters that the list of users has; listed reports whether there are any.
func (s *Service) Trace(ctx context.Context, name string) (u User, listed bool, err error) {
	items, err := s.Table.GetMany(ctx, table.Key{PK: table.UserList, SK: name}, Key(name))
	if err != nil {
		return User{}, false, fmt.Errorf("reading user: %w", err)
	}
	return trace(items[0], items[1])
}

// trace is Trace for the items of a user in the list and of the user.
func trace(entry, profile table.Item) (u User, listed bool, err error) {
	var e indexEntry
	name, unlisted := entry.Key.SK, entry.Decode(&e)
	if err = profile.Decode(&u); err == nil && u.Name != name {
		err = fmt.Errorf("the item belongs to %q: %w", u.Name, table.ErrUnreadable)
	}
	switch {
	case err == nil:
		return u, unlisted == nil, nil
	case profile.Found():
		err = fmt.Errorf("the account of %s cannot be read: %w (%w)", name, ErrDamaged, err)
	case e.Removed || errors.Is(unlisted, table.ErrNotFound):
		err = fmt.Errorf("%w %s", ErrUnknown, name)
	default:
		err = Lost(name)
	}
	u = User{
		Name:        name,
		LastFile:    e.LastFile,
		Generation:  e.Generation,
		Incarnation: e.Incarnation,
	}
	return u, unlisted == nil, err
}

// KnowsLess calls tell for each user about whom the table now knows less than the earlier one:
// the user is missing but was not removed, cannot be read, or has a lower last file id. Such a
// table is older, or has lost items.
func KnowsLess(ctx context.Context, earlier, now table.Table, tell func(string)) error {
	for listed, err := range table.Each(ctx, earlier, table.Query{PK: table.UserList, Limit: table.MaxKeys}) {
		if err != nil {
			return err
		}
		name := listed.Key.SK
		was, _, before := (&Service{Table: earlier}).Trace(ctx, name)
		is, listed, bad := (&Service{Table: now}).Trace(ctx, name)
		unknown, unreadable := errors.Is(bad, ErrUnknown), errors.Is(bad, table.ErrUnreadable)
		lost := unknown && !listed || errors.Is(bad, ErrDamaged) && !unreadable
		switch {
		case errors.Is(before, ErrUnknown), errors.Is(before, ErrDamaged): // the earlier table knows no more
		case before != nil || bad != nil && !unknown && !unreadable && !lost:
			return fmt.Errorf("comparing users: %w", errors.Join(before, bad))
		case unreadable:
			tell(fmt.Sprintf("the item %s cannot be read", Key(name)))
		case lost:
			tell(fmt.Sprintf("the user %s is missing, and was not removed", name))
		case is.LastFile < was.LastFile:
			tell(fmt.Sprintf("the last file id of user %s is %d, but was %d before",
				name, is.LastFile, was.LastFile))
		}
	}
	return nil
}

// Add stores a new user. The name must be canonical, and the password a hash. It
// returns a Conflict fault if the name is taken.
func (s *Service) Add(ctx context.Context, u User) error {
	last, removed, err := s.Trace(ctx, u.Name)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	if removed {
		last.Incarnation++
	}
	u.LastFile = last.LastFile
	u.Generation = last.Generation
	u.Incarnation = last.Incarnation
	// An earlier user of the name may be removed at this moment, which raises the generation.
	same := []table.Cond{table.AtMost(
		"lastFile",
		u.LastFile,
	), table.AtMost("generation", u.Generation)}
	return s.store(ctx, u, table.NotExists(), same...)
}

// AddAgain stores a user who is lost or cannot be read, as bad says, with the counters in u: see
// files.Remains.
func (s *Service) AddAgain(ctx context.Context, u User, bad error) error {
	if errors.Is(bad, table.ErrUnreadable) {
		return s.store(ctx, u, table.Exists())
	}
	return s.store(ctx, u, table.NotExists())
}

// store writes a user and the entry in the list, under conditions on each.
func (s *Service) store(
	ctx context.Context,
	u User,
	profile table.Cond,
	entry ...table.Cond,
) error {
	u.V, u.Created = table.Format, s.Now().Unix()
	ops := []table.Op{table.Put(Key(u.Name), u).If(profile), listEntry(u, false).If(entry...)}
	if u.Quota > 0 {
		ops = append(ops, addToQuotaList(u.Name))
	}
	err := s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return fault.New(fault.Conflict, "user %s already exists", u.Name)
	}
	return fault.Wrap(err, "storing user")
}

// QuotaList yields the names of the users who have a quota, or had one, in order, from after on.
func (s *Service) QuotaList(ctx context.Context, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for item, err := range table.Each(ctx, s.Table, table.Query{
			PK:    quotaList,
			After: after,
			Limit: table.MaxKeys,
		}) {
			if !yield(item.Key.SK, fault.Wrap(err, "listing users with a quota")) {
				return
			}
		}
	}
}

// AddToQuotaList makes QuotaList yield a user.
func (s *Service) AddToQuotaList(ctx context.Context, name string) error {
	return fault.Wrap(s.Table.Write(ctx, addToQuotaList(name)), "listing a user with a quota")
}

// Names calls yield for each user after a name, ordered by name, until yield returns an error.
// Users who are lost or cannot be read come with the error and what Trace returns.
func (s *Service) Names(
	ctx context.Context,
	after string,
	yield func(u User, bad error) error,
) error {
	q := table.Query{PK: table.UserList, After: after, Limit: table.MaxKeys}
	for more := true; more; {
		page, err := s.Table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("listing users: %w", err)
		}
		keys := make([]table.Key, len(page.Items))
		for i, entry := range page.Items {
			keys[i], q.After = Key(entry.Key.SK), entry.Key.SK
		}
		items, err := s.Table.GetMany(ctx, keys...)
		if err != nil {
			return fmt.Errorf("reading users: %w", err)
		}
		for i, item := range items {
			u, _, bad := trace(page.Items[i], item)
			if errors.Is(bad, ErrUnknown) { // a removed user, who is still in the index
				continue
			}
			if err := yield(u, bad); err != nil {
				return err
			}
		}
		more = page.More
	}
	return nil
}

// Edit changes a user's address, number, language, quota and retention from before to after, in
// one update of these attributes alone. A quota for a user who had none also sets Used, which was
// not kept until then; if the user has got a file since, or Used has changed, the fault is
// Conflict. A new address for a user in first access ends the invitation sent to the old one.
func (s *Service) Edit(ctx context.Context, before, after User) error {
	op := table.Update(Key(before.Name)).
		If(table.Exists(), table.AtMost("incarnation", before.Incarnation))
	var more []table.Op
	if before.Quota == 0 && after.Quota > 0 {
		more = []table.Op{addToQuotaList(before.Name)}
		op = op.Set("used", after.Used).
			If(
				table.Equal("lastFile", before.LastFile),
				table.AtMost("quota", 0),
				before.SameUse(),
			)
	}
	for attr, values := range map[string][2]any{
		"email":      {before.Email, after.Email},
		"phone":      {before.Phone, after.Phone},
		"lang":       {before.Lang, after.Lang},
		"quota":      {before.Quota, after.Quota},
		"keepDays":   {before.KeepDays, after.KeepDays},
		"backupDays": {before.BackupDays, after.BackupDays},
	} {
		if values[0] != values[1] {
			op = op.Set(attr, values[1])
		}
	}
	if len(op.Changes) == 0 {
		return nil
	}
	if before.State == FirstAccess && before.Email != after.Email { // an invitation to the old address ends
		op = op.Add("generation", 1)
	}
	return s.Write(ctx, append(more, op)...)
}

// Disable ends the user's access and all of the user's bearers at once. Disabling a
// disabled user changes nothing.
func (s *Service) Disable(ctx context.Context, name string) error {
	u, err := s.Get(ctx, name)
	if err != nil || u.State == Disabled {
		return err
	}
	return s.Write(ctx, table.Update(Key(name)).
		Set("state", string(Disabled)).
		Set("before", string(u.State)).
		Add("generation", 1).If(table.Equal("generation", u.Generation)))
}

// Enable gives a disabled user access again, with the state and password from before.
// It returns the state, and changes nothing for users who are not disabled.
func (s *Service) Enable(ctx context.Context, name string) (State, error) {
	u, err := s.Get(ctx, name)
	if err != nil || u.State != Disabled {
		return u.State, err
	}
	return u.Before, s.Write(ctx, table.Update(Key(name)).Set("state", string(u.Before)).
		If(table.Equal("state", string(Disabled))))
}

// SetPassword stores a new hash, puts the user in a state and ends all bearers.
func (s *Service) SetPassword(ctx context.Context, name, hash string, state State) error {
	return s.Write(ctx, setPassword(name, hash, state))
}

func setPassword(name, hash string, state State) table.Op {
	return table.Update(Key(name)).Set("password", hash).Set("state", string(state)).
		Add("generation", 1).If(table.Exists())
}

// Rehash replaces a hash with a stronger one of the same password, unless the password
// was changed meanwhile.
func (s *Service) Rehash(ctx context.Context, name, old, hash string) error {
	err := s.Table.Write(ctx, table.Update(Key(name)).
		Set("password", hash).
		If(table.Equal("password", old)))
	return fault.Wrap(err, "renewing a hash", table.ErrCondition, table.ErrFull)
}

// Write writes operations whose conditions check that the user has not changed meanwhile: else the
// fault is Conflict.
func (s *Service) Write(ctx context.Context, ops ...table.Op) error {
	err := s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return fault.New(
			fault.Conflict, "the user was changed, removed or got a file at the same moment; try again",
		)
	}
	return fault.Wrap(err, "changing user")
}

// Remove deletes the account. The user must be disabled and the files removed first: see
// files.RemoveAll. The name's last file id, generation and incarnation are kept.
func (s *Service) Remove(ctx context.Context, name string) error {
	u, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	gone := table.Delete(Key(name)).If(table.Equal("state", string(Disabled)),
		table.Equal("lastFile", u.LastFile), table.Equal("generation", u.Generation))
	return s.Write(ctx, gone, listEntry(u, true))
}
