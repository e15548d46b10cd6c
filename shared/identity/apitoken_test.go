package identity_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/table"
)

const day = 24 * time.Hour

// token makes a token for alice.
func (c check) token(t *testing.T, want identity.APIToken) (string, identity.APIToken) {
	t.Helper()
	token, made, err := c.tokens.Make(t.Context(), get(t, c.users, "alice"), want)
	must(t, err)
	return token, made
}

// use returns the scope with which a token is accepted; it is empty if the token is refused.
func (c check) use(t *testing.T, token string) identity.Scope {
	t.Helper()
	id, err := c.Check(t.Context(), identity.Credential{Kind: identity.Bearer, Bearer: token})
	if fault.Is(err, fault.Unauthorized) {
		return ""
	}
	must(t, err)
	return id.Scope
}

func (c check) names(t *testing.T) (all []string) {
	t.Helper()
	list, err := c.tokens.List(t.Context(), get(t, c.users, "alice"))
	must(t, err)
	for _, one := range list {
		all = append(all, one.Name)
	}
	return all
}

func TestATokenIsGoodForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scope   identity.Scope
		idle    int64           // in seconds, for a login
		expires time.Duration   // if set
		uses    []time.Duration // since the token was made
		ends    time.Duration
		margin  time.Duration // as uses are recorded daily
	}{
		"a token that nobody uses": {
			scope: identity.ScopeUpload, ends: 365 * day, margin: day,
		},
		"a token that is used": {
			scope: identity.ScopeAll,
			uses:  []time.Duration{300 * day, 600 * day}, ends: 965 * day, margin: day,
		},
		"a token that expires": {
			scope: identity.ScopeDownload, expires: time.Hour,
			uses: []time.Duration{time.Minute}, ends: time.Hour,
		},
		"a token that expires late, unused": {
			scope: identity.ScopeDownload, expires: 1000 * day, ends: 365 * day, margin: day,
		},
		"the login of a device": {
			scope: identity.ScopeAccount, idle: 90 * 24 * 3600,
			uses: []time.Duration{89 * day}, ends: 179 * day, margin: day,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			made := c.now()
			want := identity.APIToken{Name: "a", Scope: tt.scope, Idle: tt.idle}
			if tt.expires != 0 {
				want.Expires = made.Add(tt.expires).Unix()
			}
			token, _ := c.token(t, want)
			for _, at := range tt.uses {
				c.advance(made.Add(at).Sub(c.now()))
				expect.Equal(t, fmt.Sprint("the scope after ", at), c.use(t, token), tt.scope)
			}
			c.advance(made.Add(tt.ends - time.Minute).Sub(c.now()))
			expect.Equal(t, "the list a minute before the end", c.names(t), []string{"a"})
			c.advance(time.Minute + tt.margin)
			c.ended(t, token)
		})
	}
}

// ended checks that a token is refused, and that there is no other.
func (c check) ended(t *testing.T, token string) {
	t.Helper()
	if got := c.use(t, token); got != "" || len(c.names(t)) != 0 {
		t.Errorf("at its end the scope is %q, and the list has %v", got, c.names(t))
	}
}

// TestATokenEndsByItselfOrWithAllOthers: what else raises the user's generation ends it too.
func TestATokenEndsByItselfOrWithAllOthers(t *testing.T) {
	t.Parallel()
	c := begin(t)
	u := get(t, c.users, "alice")
	for _, end := range []func(id, token string) error{
		func(id, _ string) error { return c.tokens.End(t.Context(), u, id) },
		func(_, token string) error { return c.tokens.Revoke(t.Context(), token) },
		func(_, _ string) error { return c.tokens.EndAll(t.Context(), u) },
	} {
		token, made := c.token(t, identity.APIToken{Name: "a", Scope: identity.ScopeAll})
		expect.Equal(t, "the scope of a new token", c.use(t, token), identity.ScopeAll)
		must(t, end(made.ID, token))
		c.ended(t, token)
		err := c.tokens.End(t.Context(), get(t, c.users, "alice"), made.ID)
		expect.Fault(t, "ending it again", err, fault.NotFound)
	}
}

// counted is a table that counts calls.
type counted struct {
	table.Table
	reads, writes atomic.Int64
}

func (c *counted) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	c.reads.Add(1)
	return c.Table.GetMany(ctx, keys...)
}

func (c *counted) Write(ctx context.Context, ops ...table.Op) error {
	c.writes.Add(1)
	return c.Table.Write(ctx, ops...)
}

func TestAUseIsRecordedOnceADay(t *testing.T) {
	t.Parallel()
	c := begin(t)
	calls := &counted{Table: c.Table}
	c.tokens.Table = calls
	token, _ := c.token(t, identity.APIToken{Name: "a", Scope: identity.ScopeAll})
	calls.writes.Store(0)
	for d := range 3 {
		for range 5 {
			c.use(t, token)
			c.advance(time.Hour)
		}
		expect.Equal(t, fmt.Sprint("writes on day ", d), calls.writes.Load(), int64(d+1))
		c.advance(day)
	}
	expect.Equal(t, "reads of 15 uses", calls.reads.Load(), 15)
}

func TestAnotherTextIsRefusedWithoutTheTable(t *testing.T) {
	t.Parallel()
	c := begin(t)
	token, _ := c.token(t, identity.APIToken{Name: "a", Scope: identity.ScopeAll})
	if !regexp.MustCompile(`^ferry_[A-Za-z0-9_-]{50,134}$`).MatchString(token) {
		t.Errorf("no scanner finds %s", token)
	}
	calls := &counted{Table: c.Table}
	c.tokens.Table = calls
	text, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "ferry_"))
	for i := range text {
		other := slices.Clone(text)
		other[i] ^= 4
		if c.use(t, "ferry_"+base64.RawURLEncoding.EncodeToString(other)) != "" {
			t.Errorf("a token with another byte %d is accepted", i)
		}
	}
	for _, other := range []string{"ferry_", "ferry_!", token[:len(token)-2], token + "AA"} {
		expect.Equal(t, other, c.use(t, other), "")
	}
	expect.Equal(t, "reads", calls.reads.Load(), 0)
}

// TestFiftyTokensAreTheMost makes more at once, in two processes.
func TestFiftyTokensAreTheMost(t *testing.T) {
	t.Parallel()
	c := begin(t)
	u := get(t, c.users, "alice")
	var made, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 15 {
				for {
					_, a, err := c.tokens.Make(t.Context(), u, identity.APIToken{
						Name:  "a",
						Scope: identity.ScopeUpload,
					})
					if strings.HasPrefix(a.ID, "-") {
						t.Errorf("ferry token rm takes the id %s for a flag", a.ID)
					}
					if err == nil {
						made.Add(1)
					} else if fault.Is(err, fault.Conflict) {
						refused.Add(1)
					} else {
						continue // others made one each time
					}
					break
				}
			}
		})
	}
	all.Wait()
	if made.Load() != 50 || refused.Load() != 10 || len(c.names(t)) != 50 {
		t.Errorf("%d were made, %d refused, %d are listed", made.Load(), refused.Load(), len(c.names(t)))
	}
	c.token(t, identity.APIToken{Name: "a device", Scope: identity.ScopeAccount, Idle: 60})
	c.advance(366*day + time.Second)
	c.token(t, identity.APIToken{Name: "new", Scope: identity.ScopeAll})
	expect.Equal(t, "tokens after a year", c.names(t), []string{"new"})
	page, err := c.Table.Query(t.Context(), table.Query{PK: "tokens#alice", Limit: 100})
	if must(t, err); len(page.Items) != 2 { // the token, and the count
		t.Errorf("%d items are left", len(page.Items))
	}
}

func TestTheDeviceUnusedForLongestIsLoggedOut(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var tokens []string
	for i := range identity.MaxTokens {
		token, _ := c.token(t, identity.APIToken{
			Name:  fmt.Sprint(i),
			Scope: identity.ScopeAccount,
			Idle:  int64(identity.DeviceIdle.Seconds()),
		})
		tokens = append(tokens, token)
		c.advance(time.Minute)
	}
	c.advance(day)
	c.use(t, tokens[0])
	c.token(t, identity.APIToken{Name: "new", Scope: identity.ScopeAccount})
	for i, token := range tokens {
		want := identity.ScopeAccount
		if i == 1 {
			want = ""
		}
		expect.Equal(t, fmt.Sprint("the scope of device ", i), c.use(t, token), want)
	}
}

func TestATokenNeedsANameAndAScope(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for parameter, wants := range map[string][]identity.APIToken{
		"name": {{Scope: "all"}, {
			Name:  strings.Repeat("ä", 101),
			Scope: "all",
		}, {Name: "a\nb", Scope: "all"}, {Name: "\xff", Scope: "all"}},
		"scope":   {{Name: "a", Scope: "everything"}},
		"expires": {{Name: "a", Scope: "all", Expires: 1}},
	} {
		for _, want := range wants {
			_, _, err := c.tokens.Make(t.Context(), get(t, c.users, "alice"), want)
			if f := fault.Of(err); f == nil || f.Parameter != parameter {
				t.Errorf("%+v gives %v", want, err)
			}
		}
	}
	c.token(t, identity.APIToken{Name: strings.Repeat("ä", 100), Scope: identity.ScopeAll})
}
