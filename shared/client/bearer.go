package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// BearerFunc returns a bearer. refused is the one that the service has just
// refused, or empty: a function that knows no other returns an error then, one
// that wraps ErrNoLogin if a person has to do something. Calls come one after
// the other.
type BearerFunc func(ctx context.Context, refused string) (string, error)

// bearers keeps the bearer that all requests use.
type bearers struct {
	source BearerFunc

	mu      sync.Mutex
	current string
}

// get returns a bearer other than the refused one.
func (b *bearers) get(ctx context.Context, refused string) (string, error) {
	if b.source == nil {
		return "", ErrNoLogin
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != "" && b.current != refused {
		return b.current, nil // another request has renewed it
	}
	bearer, err := b.source(ctx, refused)
	if err != nil {
		return "", err
	}
	b.current = bearer
	return bearer, nil
}

// passwordLogin is the source of those who gave user and password.
func (c *Client) passwordLogin(user, password string) BearerFunc {
	return func(ctx context.Context, _ string) (string, error) {
		return c.Login(ctx, user, password)
	}
}

// Login returns a new bearer, good for an hour. A wrong password is an *Error
// of status 401; too many of them are one of status 429.
func (c *Client) Login(ctx context.Context, user, password string) (bearer string, err error) {
	var e envelope
	err = c.once(ctx, request{method: "POST", path: "/auth/login", basic: &basic{user, password}}, &e)
	if err == nil && e.Bearer == "" {
		err = ErrAnswer
	}
	return e.Bearer, err
}

// Logout ends a bearer at once.
func (c *Client) Logout(ctx context.Context, bearer string) error {
	form := url.Values{"token": {bearer}}.Encode()
	return c.call(ctx, request{method: "POST", path: "/oauth2/revoke", form: form}, nil)
}

// authorize puts a bearer on a request and returns it.
func (c *Client) authorize(ctx context.Context, h http.Header, refused string) (string, error) {
	bearer, err := c.bearers.get(ctx, refused)
	if err != nil {
		return "", err
	}
	h.Set("Authorization", "Bearer "+bearer)
	return bearer, nil
}

// isRefused tells whether a bearer was not taken.
func isRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusUnauthorized
}
