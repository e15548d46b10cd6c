package client

import (
	"context"
	"fmt"
	"net/url"
)

// Forgot asks for a PIN by mail and returns the link that takes it, for Change.
func (c *Client) Forgot(ctx context.Context, user string) (link string, err error) {
	return c.link(ctx, request{method: "GET", path: "/auth/forget", query: url.Values{"u": {user}}})
}

// First returns the link under which a new user chooses a password; password
// is the temporary one. Who is not in first access gets an *Error of status 403.
func (c *Client) First(ctx context.Context, user, password string) (link string, err error) {
	return c.link(ctx, request{method: "POST", path: "/auth/first", basic: &basic{user, password}})
}

func (c *Client) link(ctx context.Context, r request) (string, error) {
	var e envelope
	if err := c.once(ctx, r, &e); err != nil {
		return "", err
	}
	if e.LinkURL == "" {
		return "", ErrAnswer
	}
	return e.LinkURL, nil
}

// Change sets a new password under a link of Forgot, with the PIN that came by
// mail, or of First, without. All of the user's bearers end. An empty password
// changes nothing, and checks link and PIN.
func (c *Client) Change(ctx context.Context, link, pin, password string) error {
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("k") == "" {
		return fmt.Errorf("%w: its link has no token", ErrAnswer)
	}
	// In the body, as queries are for everybody's logs.
	form := url.Values{"k": {u.Query().Get("k")}}
	if pin != "" {
		form.Set("p", pin)
	}
	if password != "" {
		form.Set("z", password)
	}
	return c.once(ctx, request{method: "POST", path: "/auth/change", form: form.Encode()}, nil)
}
