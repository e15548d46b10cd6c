package identity

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"ferry/shared/fault"
)

// Cookie is where a browser keeps the login for the service's own pages: an API token that
// is a login. Scripts cannot read it, and a browser sends it to no page of another site
// (draft-ietf-httpbis-rfc6265bis, section 4.1.3, defines the prefixes of its name).
type Cookie struct {
	Name, Path string
	Secure     bool
	origin     string // of the service's pages
}

const loginCookie = "ferry"

// CookieOf returns the cookie of a service with this address. Without https anybody along the way
// could steal the login, so ok is then false, unless the address is on this machine or plain
// allows it.
func CookieOf(base string, plain bool) (c Cookie, ok bool) {
	u, err := url.Parse(strings.TrimSuffix(base, "/v1"))
	if err != nil || u.Host == "" {
		return Cookie{}, false
	}
	path := u.EscapedPath() // as in a browser's requests
	c = Cookie{
		Name:   loginCookie,
		Path:   path + "/",
		Secure: u.Scheme == "https",
		origin: strings.ToLower(u.Scheme + "://" + u.Host),
	}
	switch {
	case c.Secure && c.Path == "/":
		c.Name = "__Host-" + c.Name
	case c.Secure:
		c.Name, c.Path = "__Secure-"+c.Name, path
	}
	return c, c.Secure || plain || isLoopback(u.Hostname())
}

// For returns the cookie in which a browser keeps something else of the same service, for as long
// as a login.
func (c Cookie) For(name string) Cookie {
	c.Name = strings.TrimSuffix(c.Name, loginCookie) + name
	return c
}

func isLoopback(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return host == "localhost" || addr.IsLoopback()
}

// Read returns the credential in the cookie; its Kind is None if there is none. Only the
// service's own pages may change anything with it: else the fault is Forbidden.
func (c Cookie) Read(r *http.Request) (Credential, error) {
	all := r.CookiesNamed(c.Name)
	switch {
	case len(all) == 0 || all[0].Value == "":
		return Credential{}, nil
	case len(all) > 1: // a neighbour can set one for some paths, and its login would act there
		return Credential{}, fault.New(
			fault.Forbidden, "the browser sends two cookies named %s: delete this site's cookies, and log in again", c.Name,
		)
	case !c.IsOwn(r):
		return Credential{}, fault.New(
			fault.Forbidden, "a web page of another site may not do this",
		)
	}
	return Credential{Kind: Bearer, Bearer: all[0].Value, Source: Source(r)}, nil
}

// IsOwn reports whether a request changes nothing or comes from a page of the service itself.
// Unlike the rule for passwords, it accepts neither the origins that CORS allows nor a neighbour.
func (c Cookie) IsOwn(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return r.Header.Get("Origin") == c.origin // from older browsers
}

// Set returns the cookie with a token; an empty one ends it.
func (c Cookie) Set(token string) *http.Cookie {
	age := int(BrowserIdle.Seconds())
	if token == "" {
		age = -1
	}
	return &http.Cookie{
		Name:     c.Name,
		Value:    token,
		Path:     c.Path,
		MaxAge:   age,
		Secure:   c.Secure,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
