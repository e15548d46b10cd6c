package client

import (
	"context"
	"net/url"

	"ferry/shared/wire"
)

// Token is an API token of the user, or the login of a device.
type Token = wire.Token

// NewToken describes a token to be made.
type NewToken = wire.NewToken

// LoginDevice returns a token that is good for everything until 90 days after its last use. name is
// what a list of tokens shows, such as the host's name. A wrong password is an *Error with status
// 401.
func (c *Client) LoginDevice(
	ctx context.Context,
	user, password, name string,
) (token string, err error) {
	var t Token
	r := request{
		method: "POST",
		path:   "/tokens",
		basic:  url.UserPassword(user, password),
		json:   NewToken{Name: name, Scope: "login"},
	}
	if err := c.once(ctx, r, &t); err != nil {
		return "", err
	}
	if t.Token == "" {
		return "", ErrAnswer
	}
	return t.Token, nil
}

// AddToken makes a token. Its Token is never shown again. It does not retry, so that there are
// never two.
func (c *Client) AddToken(ctx context.Context, t NewToken) (made Token, err error) {
	err = c.once(ctx, request{method: "POST", path: "/tokens", json: t}, &made)
	return made, err
}

// Tokens returns the tokens and logins of the user, the newest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	all, err := get[struct{ Tokens []Token }](ctx, c, "/tokens", nil)
	return all.Tokens, err
}

// EndToken ends a token at once. An unknown id is an ErrNotFound.
func (c *Client) EndToken(ctx context.Context, id string) error {
	return c.end(ctx, "/tokens/"+url.PathEscape(id), nil)
}

// EndTokens ends all tokens, logins and bearers of the user, including this client's.
func (c *Client) EndTokens(ctx context.Context) error {
	return c.end(ctx, "/tokens", nil)
}

// ChangePassword sets a new password and ends all tokens, logins and bearers, including this
// client's. A wrong old password is an *Error with status 403.
func (c *Client) ChangePassword(ctx context.Context, old, password string) error {
	return c.once(ctx, request{
		method: "POST",
		path:   "/me/password",
		json:   wire.NewPassword{Old: old, New: password},
	}, nil)
}
