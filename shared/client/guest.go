package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"ferry/shared/wire"
)

// Request is a request for files: a link through which people without an account send files to its
// maker.
type Request = wire.Request

// NewRequest describes a request to be made, or what to change in one. A nil field is left
// unchanged, or unset in a new request.
type NewRequest = wire.NewRequest

// RequestAbout is what a request says to everybody who has its link.
type RequestAbout = wire.RequestAbout

func requestPath(id string) string { return "/requests/" + url.PathEscape(id) }

// AddRequest makes a request. It does not retry, so that there are never two.
func (c *Client) AddRequest(ctx context.Context, q NewRequest) (made Request, err error) {
	err = c.once(ctx, request{method: "POST", path: "/requests", json: q}, &made)
	return made, err
}

// Requests returns the caller's open requests.
func (c *Client) Requests(ctx context.Context) ([]Request, error) {
	all, err := get[struct{ Requests []Request }](ctx, c, "/requests", nil)
	return all.Requests, err
}

// ChangeRequest changes a request, and returns the changed request. If it is not open, the error is
// an ErrNotFound.
func (c *Client) ChangeRequest(ctx context.Context, id string, q NewRequest) (Request, error) {
	return result[Request](ctx, c, request{method: "PATCH", path: requestPath(id), json: q})
}

// EndRequest ends a request at once. What has arrived stays. If it is not open, the error is an
// ErrNotFound.
func (c *Client) EndRequest(ctx context.Context, id string) error {
	return c.end(ctx, requestPath(id), nil)
}

// GuestOptions say how to use the link of a request.
type GuestOptions struct {
	Name string // the guest's name; may be empty

	// Secret is the GuestSecret of an earlier client for the same link. With it the client is the
	// same guest, who can resume uploads and is not asked for a password.
	Secret string
	// Password returns the password of a protected request. wrong is the error of the previous
	// password, or nil. Password itself may be nil.
	Password func(wrong error) (string, error)

	HTTP  *http.Client // as in Options
	Retry Retry
}

// guestHeader is the header with the secret by which the service recognizes a guest.
const guestHeader = "Ferry-Guest"

// guest is a guest who uploads through the link of a request.
type guest struct{ token, secret, name string }

// Join returns a client that uploads through the link of a request, without an account, and what
// the request says. Such a client cannot use anything in a Delivery. The files that it returns have
// no link.
func Join(ctx context.Context, link string, o GuestOptions) (*Client, RequestAbout, error) {
	u, err := url.Parse(link)
	if err != nil || !isWeb(u) || u.Query().Get("k") == "" {
		return nil, RequestAbout{}, errors.New("this is not the link of a request for files")
	}
	before, _, _ := strings.Cut(u.Path, "/v1/")
	c, err := New(Options{
		URL:   fmt.Sprintf("%s://%s%s/v1", u.Scheme, u.Host, before),
		HTTP:  o.HTTP,
		Retry: o.Retry,
	})
	if err != nil {
		return nil, RequestAbout{}, err
	}
	c.guest = &guest{token: u.Query().Get("k"), secret: o.Secret, name: o.Name}
	c.login = func(ctx context.Context, refused string) (_ string, err error) {
		if refused != "" {
			_, err = c.join(ctx, "") // which says why
		}
		return c.guest.token, err
	}
	about, err := c.join(ctx, "")
	err = withPassword(err, o.Password, func(password string) (err error) {
		about, err = c.join(ctx, password)
		return err
	})
	return c, about, err
}

// join makes the client a guest before the first file is sent: if the answer to that file were
// lost, a retry would come from another guest, and would store the file twice.
func (c *Client) join(ctx context.Context, password string) (about RequestAbout, err error) {
	var h http.Header
	r := request{
		method:    "GET",
		path:      "/requests/in",
		anonymous: true,
		query:     url.Values{"k": {c.guest.token}},
		answered:  &h,
	}
	r.header = http.Header{"Accept": {"application/json"}}
	if c.guest.secret != "" {
		r.header.Set(guestHeader, c.guest.secret)
	}
	if password != "" { // unlike other headers, this one is defined for more than ASCII
		r.basic = url.UserPassword("", password)
	}
	if err = c.call(ctx, r, &about); err == nil {
		c.guest.secret = h.Get(guestHeader)
	}
	return about, err
}

// GuestSecret returns the secret that makes another client the same guest. Nobody else may know it.
func (c *Client) GuestSecret() string {
	if c.guest == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.guest.secret
}

// withPassword calls try with passwords from ask, as long as err says that another one is needed.
func withPassword(
	err error,
	ask func(wrong error) (string, error),
	try func(password string) error,
) error {
	var wrong error
	for errors.Is(err, ErrPassword) && ask != nil {
		password, noAnswer := ask(wrong)
		if noAnswer != nil {
			return noAnswer
		}
		err = try(password)
		wrong = err
	}
	return err
}
