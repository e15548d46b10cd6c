package identity

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

const (
	// tokenPrefix marks an API token, so that secret scanners find it. After it come, in
	// base64url, 256 random bits, the user's name, and the CRC-32 (IEEE, the highest byte first)
	// of both.
	tokenPrefix = "ferry_"
	crcSize     = 4

	// MaxTokens is the most tokens of programs that a user can have, and also the most logins.
	MaxTokens = 50
	// MaxTokenName is the longest name of a token, in characters.
	MaxTokenName = 100

	// A token ends when nobody has used it for this long.
	tokenIdle = 365 * day
	// DeviceIdle is the same for the login of a device.
	DeviceIdle = 90 * day
	// BrowserIdle is the same for the login of a browser.
	BrowserIdle = 30 * day
	day         = 24 * time.Hour
	// useEvery is how often a use is recorded. A token lasts that much longer, as its last use
	// may have been later.
	useEvery = day

	tokenTries = 5
)

// APIToken is a token as its owner sees it. Times are Unix seconds.
type APIToken struct {
	ID      string `json:"-"`
	Name    string `json:"name"`
	Scope   Scope  `json:"scope"`
	Created int64  `json:"created"`
	Used    int64  `json:"used,omitempty"`    // the last use, accurate to a day; 0 is never
	Expires int64  `json:"expires,omitempty"` // 0 is never, while it is used
	// Idle is how many seconds the token lasts without a use.
	Idle int64 `json:"idle"`

	key table.Key
}

// Ends returns when the token ends if it is not used from now on.
func (t APIToken) Ends() time.Time {
	end := time.Unix(max(t.Created, t.Used)+t.Idle, 0)
	if expires := time.Unix(t.Expires, 0); t.Expires != 0 && expires.Before(end) {
		return expires
	}
	return end
}

// tokenItem is a token as stored, under its hash.
type tokenItem struct {
	V          int64 `json:"v"`
	Generation int64 `json:"generation"` // the user's when the token was made
	APIToken
}

// tokensOf is the partition of a user's tokens. The item tokenCount in it changes whenever one is
// added, so that no two are added at the same moment.
func tokensOf(user string) string { return "tokens#" + user }

const tokenCount = "count"

func tokenKey(user, token string) table.Key {
	return table.Key{PK: tokensOf(user), SK: keys.HashToken(token)}
}

// idOf returns the id of the token with a hash.
func idOf(hash string) string { return hash[:min(16, len(hash))] }

// newAPIToken returns a token for a user.
func newAPIToken(random io.Reader, user string) (string, error) {
	b := make([]byte, keys.TokenSize)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	b = append(b, user...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(
		b,
		crc32.ChecksumIEEE(b),
	)), nil
}

// tokenUser returns the name of the user of an API token. ok is false for anything else, which is
// thus refused without a call to the table.
func tokenUser(token string) (user string, ok bool) {
	text, isToken := strings.CutPrefix(token, tokenPrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !isToken || err != nil || len(b) <= keys.TokenSize+crcSize {
		return "", false
	}
	b, sum := b[:len(b)-crcSize], binary.BigEndian.Uint32(b[len(b)-crcSize:])
	user = string(b[keys.TokenSize:])
	canonical, valid := users.CanonicalName(user)
	return user, valid && canonical == user && sum == crc32.ChecksumIEEE(b)
}

// Make stores a new token of a user and returns it. Name, Scope, Expires and, for a login, Idle
// are as in want. If the user already has MaxTokens, a new login ends the one that was unused for
// longest, and for any other token the fault is Conflict. It makes two calls to the table, and
// two more for each time that another token is made meanwhile.
func (s *Tokens) Make(
	ctx context.Context,
	u users.User,
	want APIToken,
) (token string, made APIToken, err error) {
	if want, err = s.check(want); err != nil {
		return "", APIToken{}, err
	}
	var key table.Key
	for want.ID == "" || want.ID[0] == '-' { // which a command would take for a flag
		if token, err = newAPIToken(s.Random, u.Name); err != nil {
			return "", APIToken{}, err
		}
		key = tokenKey(u.Name, token)
		want.ID = idOf(key.SK)
	}
	for range tokenTries {
		ops, err := s.room(ctx, u, want.Scope.IsLogin())
		if err != nil {
			return "", APIToken{}, err
		}
		item := tokenItem{V: table.Format, Generation: u.Generation, APIToken: want}
		put := table.Put(key, item).Expire(want.Ends().Add(useEvery))
		err = s.Table.Write(ctx, append(ops, put)...)
		if !errors.Is(err, table.ErrCondition) {
			return token, want, fault.Wrap(err, "storing a token")
		}
	}
	return "", APIToken{}, fmt.Errorf("making a token: %w", table.ErrBusy)
}

// check validates a token that is to be made, and returns it with its times.
func (s *Tokens) check(t APIToken) (APIToken, error) {
	now := s.Now()
	t.Created, t.Used = now.Unix(), 0
	if !t.Scope.IsLogin() || t.Idle == 0 {
		t.Idle = int64(tokenIdle.Seconds())
	}
	switch n := utf8.RuneCountInString(t.Name); {
	case n == 0 ||
		n > MaxTokenName ||
		strings.ContainsFunc(t.Name, unicode.IsControl) ||
		!utf8.ValidString(t.Name):
		return t, fault.Parameter(
			"name", "name is required: at most %d characters that say what the token is for", MaxTokenName,
		)
	case !slices.Contains(Scopes(), t.Scope):
		return t, fault.Parameter("scope", "scope must be upload, download, all or login")
	case t.Expires != 0 && t.Expires <= now.Unix():
		return t, fault.Parameter("expires", "expires must be in the future")
	}
	return t, nil
}

// room returns the operations that make room for one more token, and fail if another one is
// added meanwhile.
func (s *Tokens) room(ctx context.Context, u users.User, login bool) ([]table.Op, error) {
	live, dead, count, err := s.read(ctx, u)
	if err != nil {
		return nil, err
	}
	same := slices.DeleteFunc(live, func(t APIToken) bool { return t.Scope.IsLogin() != login })
	if len(same) >= MaxTokens {
		if !login {
			return nil, fault.New(
				fault.Conflict, "you have %d API tokens, the most that a user may have: end one first", len(same),
			)
		}
		idlest := slices.MinFunc(same, func(a, b APIToken) int {
			return cmp.Compare(max(a.Created, a.Used), max(b.Created, b.Used))
		})
		dead = append([]table.Key{idlest.key}, dead...)
	}
	ops := []table.Op{s.step(u, count)}
	for _, key := range dead[:min(len(dead), table.MaxOps-2)] {
		ops = append(ops, table.Delete(key))
	}
	return ops, nil
}

// step returns the operation that counts a new token. It fails if another one was added since
// count was read.
func (s *Tokens) step(u users.User, count int64) table.Op {
	return table.Update(table.Key{
		PK: tokensOf(u.Name),
		SK: tokenCount,
	}).Set("v", table.Format).Set("n", count+1).
		If(table.AtMost("n", count)).Expire(s.Now().Add(2 * tokenIdle))
}

// read returns a user's tokens, the keys of those that have ended, and how many were made. It
// makes one call to the table.
func (s *Tokens) read(
	ctx context.Context,
	u users.User,
) (live []APIToken, dead []table.Key, count int64, err error) {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: tokensOf(u.Name)}) {
		var t struct {
			tokenItem
			N int64 `json:"n"` // of the item tokenCount
		}
		if err == nil {
			err = item.Decode(&t)
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("listing tokens: %w", err)
		}
		t.ID, t.key = idOf(item.Key.SK), item.Key
		switch {
		case item.Key.SK == tokenCount:
			count = t.N
		case t.valid(u, s.Now()):
			live = append(live, t.APIToken)
		default:
			dead = append(dead, t.key)
		}
	}
	return live, dead, count, nil
}

// List returns a user's tokens, the newest first.
func (s *Tokens) List(ctx context.Context, u users.User) ([]APIToken, error) {
	all, _, _, err := s.read(ctx, u)
	slices.SortFunc(all, func(a, b APIToken) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// End ends one token of a user. The fault is NotFound if there is none with this id.
func (s *Tokens) End(ctx context.Context, u users.User, id string) error {
	live, _, _, err := s.read(ctx, u)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(live, func(t APIToken) bool { return t.ID == id })
	if at < 0 {
		return fault.New(fault.NotFound, "there is no such token; it may have ended")
	}
	return fault.Wrap(s.Table.Write(ctx, table.Delete(live[at].key)), "ending a token")
}

// EndAll ends all tokens and bearers of a user at once, including the one that made this request.
func (s *Tokens) EndAll(ctx context.Context, u users.User) error {
	return s.Users.Write(ctx, table.Update(users.Key(u.Name)).Add("generation", 1).
		If(table.Exists(), table.AtMost("incarnation", u.Incarnation)))
}

// EndLogins ends all logins and bearers of a user at once, including the one that made this
// request. The tokens of programs stay valid. It makes two calls to the table. If something else
// changes the user or the tokens at the same moment, nothing ends, and the fault is Conflict.
func (s *Tokens) EndLogins(ctx context.Context, u users.User) error {
	live, _, count, err := s.read(ctx, u)
	if err != nil {
		return err
	}
	ops := []table.Op{
		table.Update(users.Key(u.Name)).Add("generation", 1).If(table.Exists(),
			table.AtMost(
				"incarnation",
				u.Incarnation,
			), table.AtMost("generation", u.Generation)),
		s.step(u, count),
	}
	for _, t := range live {
		if !t.Scope.IsLogin() {
			ops = append(ops, table.Update(t.key).
				Set("generation", u.Generation+1).
				If(table.Exists()))
		}
	}
	return s.Users.Write(ctx, ops...)
}

// EndPrograms ends all tokens of a user's programs. It makes two calls to the table.
func (s *Tokens) EndPrograms(ctx context.Context, u users.User) error {
	live, _, _, err := s.read(ctx, u)
	if err != nil {
		return err
	}
	var ops []table.Op
	for _, t := range live {
		if !t.Scope.IsLogin() {
			ops = append(ops, table.Delete(t.key))
		}
	}
	return fault.Wrap(s.Table.Write(ctx, ops...), "ending tokens")
}
