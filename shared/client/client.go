// Package client talks to a Ferry service: it logs in, uploads files of any
// size so that they can be resumed, lists, downloads and deletes them.
//
// New makes a Client, which is safe for concurrent use. Its calls retry after
// failed connections and after answers that ask to try later. They return an
// *Error for what the service refuses; IsNetwork reports what a retry may fix. An
// expired login is renewed, even in the middle of a transfer.
//
// Upload sends content from memory that fits one request (SmallFile). Put sends a file of any size
// in parts, and Fetch and Copy download: these never hold a whole file in memory. Bundle packs a
// tree into one file for Put, and Unpack downloads its files. Uploads state checksums that the
// service compares: SHA-256 with Upload, CRC64NVME of each part and of the whole with Put, and the
// SHA-256 that a Source states.
//
// Start reading at Client; request.go sends requests, put.go uploads, fetch.go
// downloads, unpack.go downloads bundles.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"ferry/shared/wire"
)

// Options say which service to talk to and as whom.
type Options struct {
	// URL is the service's base address, such as https://files.example.com/v1.
	// Without a path, /v1 is added.
	URL string

	// User and Password log in when a bearer is needed, and again when it has
	// expired. They are not used if Bearer is set.
	User, Password string

	// Bearer returns the bearers, for programs that keep them elsewhere.
	Bearer BearerFunc

	// HTTP sends the requests; if nil the package makes its own client. Its
	// Timeout has to be 0 for large files. The package follows redirects itself,
	// so that credentials go to no other address.
	HTTP *http.Client

	// Retry says how often to try; the zero value is a good choice.
	Retry Retry
}

// BearerFunc returns a bearer. refused is the one that the service has just
// refused, or empty. A function that has no other bearer returns an error, which
// wraps ErrNoLogin if a person has to log in. Calls come one at a time.
type BearerFunc func(ctx context.Context, refused string) (string, error)

// Client talks to one service as one user, or without a login: then it can only
// download by links and change passwords. Join makes one for a guest.
type Client struct {
	base  string
	http  *http.Client
	retry Retry
	login BearerFunc // nil without a login
	guest *guest     // nil for a user

	mu     sync.Mutex
	bearer string // of all requests
}

// New checks the options; it sends nothing.
func New(o Options) (*Client, error) {
	base, err := BaseURL(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base:  base,
		http:  withoutRedirects(o.HTTP),
		retry: o.Retry.withDefaults(),
		login: o.Bearer,
	}
	if c.login == nil && o.User != "" {
		c.login = func(ctx context.Context, _ string) (string, error) {
			return c.Login(ctx, o.User, o.Password)
		}
	}
	return c, nil
}

// URL is the service's base address, without a slash at its end.
func (c *Client) URL() string { return c.base }

// BaseURL turns what a person types into a base address.
func BaseURL(text string) (string, error) {
	if text == "" {
		return "", errors.New("the service's URL is missing")
	}
	u, err := url.Parse(text)
	if err != nil || !isWeb(u) || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf(
			"%q is not the URL of a service, such as https://files.example.com/v1",
			text,
		)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	if !strings.HasSuffix(u.Path, "/v1") {
		return "", fmt.Errorf(
			"%s is not the URL of a service: it must end in /v1, such as %s/v1",
			u,
			u,
		)
	}
	return u.String(), nil
}

func isWeb(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// withoutRedirects returns a client like h, or a new one if h is nil, that hands
// redirects to the caller.
func withoutRedirects(h *http.Client) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	t.DisableCompression = true // otherwise ranges and lengths would not be the file's
	t.WriteBufferSize, t.ReadBufferSize = 64<<10, 64<<10
	own := *cmp.Or(h, &http.Client{Transport: t})
	own.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &own
}

// Health returns an error if the service does not work. It does not retry.
func (c *Client) Health(ctx context.Context) error {
	return c.once(ctx, request{method: "GET", path: "/health", anonymous: true}, &envelope{})
}

// Login returns a new bearer, valid for an hour. A wrong password is an *Error with
// status 401; after too many of them the status is 429.
func (c *Client) Login(ctx context.Context, user, password string) (bearer string, err error) {
	return c.ask(ctx, request{
		method: "POST",
		path:   "/auth/login",
		basic:  url.UserPassword(user, password),
	})
}

// Logout ends a bearer at once.
func (c *Client) Logout(ctx context.Context, bearer string) error {
	return c.call(ctx, request{
		method:    "POST",
		path:      "/oauth2/revoke",
		anonymous: true,
		form:      url.Values{"token": {bearer}},
	}, nil)
}

// Forgot makes the service mail a PIN, and returns the link that takes it, for Change.
func (c *Client) Forgot(ctx context.Context, user string) (link string, err error) {
	return c.ask(ctx, request{
		method:    "GET",
		path:      "/auth/forget",
		anonymous: true,
		query:     url.Values{"u": {user}},
	})
}

// First returns the link under which a new user chooses a password; password
// is the temporary one. A user who is not in first access gets an *Error with
// status 403.
func (c *Client) First(ctx context.Context, user, password string) (link string, err error) {
	return c.ask(ctx, request{
		method: "POST",
		path:   "/auth/first",
		basic:  url.UserPassword(user, password),
	})
}

// ask sends a request once and returns the bearer or the link in the answer.
func (c *Client) ask(ctx context.Context, r request) (string, error) {
	var e envelope
	if err := c.once(ctx, r, &e); err != nil {
		return "", err
	}
	if e.Bearer == "" && e.LinkURL == "" {
		return "", ErrAnswer
	}
	return cmp.Or(e.Bearer, e.LinkURL), nil
}

// Change sets a new password: with the link from Forgot and the mailed PIN, or with
// the link from First and no PIN. It ends all of the user's bearers. With an empty
// password it changes nothing, and only checks the link and the PIN.
func (c *Client) Change(ctx context.Context, link, pin, password string) error {
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("k") == "" {
		return fmt.Errorf("%w: its link has no token", ErrAnswer)
	}
	form := url.Values{"k": {u.Query().Get("k")}, "p": {pin}, "z": {password}} // in the body, as queries end up in logs
	return c.once(ctx, request{
		method:    "POST",
		path:      "/auth/change",
		anonymous: true,
		form:      form,
	}, nil)
}

// Account is the account of the client's user. Limits that do not exist are nil.
type Account = wire.Account

// Allowance says how many notices the user may still cause in a period.
type Allowance = wire.Allowance

// Account returns the caller's account.
func (c *Client) Account(ctx context.Context) (Account, error) {
	return get[Account](ctx, c, "/me", nil)
}
