// Package client talks to a Ferry service: it logs in, uploads files of any
// size so that they can be resumed, lists, downloads and deletes them.
//
// A Client is made by New and is safe for concurrent use. Its calls retry what
// can be repeated (connections that fail, answers that ask to come again) and
// return an *Error for what the service refuses; IsNetwork tells what a later
// try may mend. A login that has run out is renewed, also midway.
//
// Upload sends what fits one request (SmallFile) and is held in memory, Put a
// file of any size in parts, and Fetch or Copy download: those hold no whole
// file. Uploads state checksums that the service compares: SHA-256 with Upload,
// CRC64NVME of each part and of the whole with Put, and the SHA-256 that a
// Source states.
package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// prefix is the version segment that every address of the interface has.
const prefix = "/v1"

// Options say which service to talk to and as whom.
type Options struct {
	// URL is the service's base address, such as https://files.example.com/v1.
	// Without a path, /v1 is added.
	URL string

	// User and Password log in when a bearer is needed, and again when it has
	// ended. They are not used if Bearer is set.
	User, Password string

	// Bearer gives the bearers, for those who keep them elsewhere.
	Bearer BearerFunc

	// HTTP sends the requests; nil is a client of the package's own. Its
	// Timeout has to be 0 for large files. Redirects are followed by the
	// package, which does not carry credentials to other addresses.
	HTTP *http.Client

	// UserAgent is sent with each request; "ferry" if empty.
	UserAgent string

	// Retry says how often to try; the zero value is a good one.
	Retry Retry

	// Idle is for how long a connection may move no byte before it counts as
	// lost; a minute if 0.
	Idle time.Duration
}

// Client talks to one service as one user, or as nobody: then only links can
// be downloaded and passwords be changed.
type Client struct {
	base    string
	http    *http.Client
	agent   string
	retry   Retry
	idle    time.Duration
	bearers *bearers
}

// New checks the options; it sends nothing.
func New(o Options) (*Client, error) {
	base, err := BaseURL(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base: base, agent: cmp.Or(o.UserAgent, "ferry"), retry: o.Retry.withDefaults(),
		idle: cmp.Or(o.Idle, time.Minute), http: withoutRedirects(o.HTTP),
	}
	source := o.Bearer
	if source == nil && o.User != "" {
		source = c.passwordLogin(o.User, o.Password)
	}
	c.bearers = &bearers{source: source}
	return c, nil
}

// URL is the service's base address, without a slash at its end.
func (c *Client) URL() string { return c.base }

// BaseURL makes a base address of what a person types.
func BaseURL(text string) (string, error) {
	if text == "" {
		return "", errors.New("the service's URL is missing")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("%q is not the URL of a service, such as https://files.example.com/v1", text)
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "" {
		u.Path = prefix
	}
	return u.String(), nil
}

// withoutRedirects is a client like h that hands redirects to the caller.
func withoutRedirects(h *http.Client) *http.Client {
	own := http.Client{}
	if h != nil {
		own = *h
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 16
		t.DisableCompression = true // or else ranges and lengths would not be those of the file
		t.WriteBufferSize, t.ReadBufferSize = 64<<10, 64<<10
		own.Transport = t
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
