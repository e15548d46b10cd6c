package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table"
)

const (
	// The most requests for a forgotten password: per hour from one source, for one user and for
	// all users; per day for one user. maxMails is the most mails to one user in a day.
	maxPerPair, maxPerSource = 3, 20
	maxPerUser, maxMails     = 30, 10
)

// Forget makes a change token and mails the PIN that it needs, unless the user was sent 10 PINs
// in the last day. source is the caller's, as from Source; base and lang are for the mail. It
// makes two calls to the table. This process handles one request from a source at a time.
func (s *Service) Forget(
	ctx context.Context,
	name, source, base, lang string,
) (token, user string, err error) {
	canonical, valid := CanonicalName(name)
	switch {
	case !valid && s.HideUsers: // everyone knows that no user can have this name
		token, err = keys.RandomToken(s.Random)
		return token, name, err
	case !valid:
		return "", "", errUnknown
	}
	f := forgetting{Service: s, name: canonical, base: base, lang: lang}
	f.source = table.Key{PK: "forget#" + source, SK: "source"}
	limiter := limit.Limiter{Table: s.Table, Now: s.Now, Tries: s.Tries}
	err = limiter.InTurn(ctx, f.source, maxPerSource, func() (err error) {
		for range 3 { // a try fails only if another request for this user or from this source comes in between
			token, err = f.try(ctx)
			if !errors.Is(err, table.ErrCondition) {
				return err
			}
		}
		return table.ErrBusy
	})
	return token, canonical, err
}

var errUnknown = fault.New(fault.Unauthorized, "the user does not exist")

// forgetting is one request for a forgotten password.
type forgetting struct {
	*Service
	name, base, lang string
	source           table.Key // of its source's requests
	nonce, hash      string    // what the token and the PIN are derived from, and the slow hash of the PIN
}

func (f *forgetting) try(ctx context.Context) (token string, err error) {
	ofUser := table.Key{PK: "user#" + f.name, SK: "forget"}
	items, err := f.Table.GetMany(ctx, Key(f.name), ofUser, f.source)
	if err != nil {
		return "", fmt.Errorf("reading user: %w", err)
	}
	now := f.Now()
	user, err := limit.ReadRecent(items[1], now, day)
	if err != nil {
		return "", err
	}
	source, err := limit.ReadRecent(items[2], now, time.Hour)
	if err != nil {
		return "", err
	}
	id := keys.HashToken(f.name)[:8] // a longer text would only take space
	wait := cmp.Or(
		user.Wait("", now, maxPerUser),
		source.Wait("", now, maxPerSource),
		source.Wait(id, now, maxPerPair),
	)
	if wait > 0 {
		return "", fault.Wait(
			wait,
			"the limits are %d requests an hour from one address for one user, "+
				"%d an hour from one address in all, and %d a day for one user",
			maxPerPair,
			maxPerSource,
			maxPerUser,
		)
	}
	ops := []table.Op{source.Add(now, id)}
	u, failed := recipient(items[0])
	if fault.Of(failed) != nil && f.HideUsers {
		// Continue as for other users, but send no mail. No PIN matches this token.
		u, failed = User{Name: f.name, Generation: -1}, nil
	}
	if failed == nil {
		mailed := ""
		if u.Email != "" && user.Wait(mail, now, maxMails) == 0 {
			mailed = mail
		}
		var more []table.Op
		token, more, err = f.make(ctx, u, mailed != "")
		ops = append(append(ops, user.Add(now, mailed)), more...)
	}
	if err == nil {
		err = fault.Wrap(
			f.Table.Write(ctx, ops...),
			"storing a request for a forgotten password",
		)
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
func (f *forgetting) make(
	ctx context.Context,
	u User,
	mailed bool,
) (token string, ops []table.Op, err error) {
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

// mail notes that a mail was sent to a user.
const mail = "mail"
