// Package api defines endpoints: a name, routes, and one constructor that makes the
// handler from ports, for Lambda, for the one-process server and for tests alike. Start
// reading with Endpoint; routes.go lists all routes.
package api

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Route is a method, a path after wire.Prefix, which may have a segment such as {id}, and the scope
// that a caller needs. The scope is empty if the route needs no login.
type Route struct {
	Method, Path string
	Needs        identity.Scope
}

// pattern returns the route's pattern for an http.ServeMux, below a prefix.
func (r Route) pattern(prefix string) string {
	if path := prefix + r.Path; path != "/" {
		return r.Method + " " + path
	}
	return r.Method + " /{$}"
}

// Endpoint is a Lambda function and its routes.
type Endpoint struct {
	Name   string
	Prefix string // of its paths; empty for pages
	Routes []Route
	New    func(*Ports) http.Handler
}

// Handler returns a handler of the endpoint's routes. fallback answers everything else.
func (e Endpoint) Handler(p *Ports, fallback http.Handler) http.Handler {
	mux := http.NewServeMux()
	e.Mount(mux, p, fallback)
	mux.Handle("/", fallback)
	return Exact(mux, fallback)
}

// Exact lets fallback answer paths with empty or dotted segments, which an http.ServeMux would
// redirect. A redirect has no envelope, and a client that does not follow it would believe that its
// upload succeeded.
func Exact(mux *http.ServeMux, fallback http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			fallback.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isClean(p string) bool {
	clean := path.Clean(p)
	return path.IsAbs(p) && (p == clean || p == clean+"/" && clean != "/")
}

// Mount adds the endpoint's routes to a mux. If a path has GET but not HEAD, fallback answers HEAD:
// the mux would run it as a GET, with its side effects. GET on a page has no side effects, so HEAD
// may run it. (A separate HEAD /{page} would conflict with GET /inbox.)
func (e Endpoint) Mount(mux *http.ServeMux, p *Ports, fallback http.Handler) {
	h := e.New(p)
	for _, r := range e.Routes {
		if e.Prefix == "" && r.Method == http.MethodHead {
			continue
		}
		mux.Handle(r.pattern(e.Prefix), h)
		if r.Method == http.MethodGet &&
			!slices.Contains(e.Routes, Route{http.MethodHead, r.Path, r.Needs}) {
			mux.Handle(http.MethodHead+" "+e.Prefix+r.Path, fallback)
		}
	}
}

// Ports are what a handler may use: the service, and the limits of this process.
type Ports struct {
	*service.Service
	Slots *Slots // nil is no limit
	// Lingering is as in envelope.Outlet.
	Lingering chan struct{}
	// Guests returns the guest who holds the token of a request's link. It is nil where guests may
	// do nothing.
	Guests func(w http.ResponseWriter, r *http.Request, token string) (identity.Identity, error)
}

// Outlet returns an Outlet with the service's clock, log and address.
func (p *Ports) Outlet() envelope.Outlet {
	return envelope.Outlet{Now: p.Now, Log: p.Log, Base: p.Base, Lingering: p.Lingering}
}

// Handler handles a request of an authenticated caller.
type Handler = func(http.ResponseWriter, *http.Request, identity.Identity) error

// Authenticated returns a handler for callers with a valid credential whose scope allows the route.
// The handler must be called by a mux, which notes in the request which route this is.
func (p *Ports) Authenticated(f Handler) http.Handler {
	return p.AuthenticatedTo(p.Outlet(), f)
}

// AuthenticatedTo is Authenticated with a given outlet instead of the ports' own.
func (p *Ports) AuthenticatedTo(outlet envelope.Outlet, f Handler) http.Handler {
	callers, needs := p.Credentials(), needs()
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		id, err := p.identify(w, r, callers)
		if err == nil {
			err = id.Allow(needs[r.Pattern])
		}
		if err != nil {
			return err
		}
		return f(w, r, id)
	})
}

// identify returns the caller, from the Authorization header or, without one, from a browser's
// cookie.
func (p *Ports) identify(
	w http.ResponseWriter,
	r *http.Request,
	callers identity.Authenticator,
) (id identity.Identity, err error) {
	c := identity.Read(r)
	if cookie, ok := p.Cookie(r.Context()); ok && c.Kind == identity.None {
		if c, err = cookie.Read(r); err != nil {
			return id, err
		}
	}
	if p.Guests != nil && links.IsRequest(c.Bearer) {
		return p.Guests(w, r, c.Bearer)
	}
	return callers.Check(r.Context(), c)
}

// Cookie returns the cookie that keeps a browser logged in; ok is false if browsers cannot log in
// here.
func (p *Ports) Cookie(ctx context.Context) (c identity.Cookie, ok bool) {
	return identity.CookieOf(p.Base(ctx), p.PlainLogin)
}

// ByRoute is Authenticated for an endpoint with a handler for each method and path after
// wire.Prefix. Any query parameter other than these and lang is a 400.
func (p *Ports) ByRoute(handlers map[string]Handler, query ...string) http.Handler {
	mux := http.NewServeMux()
	for route, f := range handlers {
		mux.Handle(strings.Replace(
			route,
			" ",
			" "+wire.Prefix,
			1,
		), p.Authenticated(func(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
			if err := param.OnlyKnown(r, query...); err != nil {
				return err
			}
			return f(w, r, u)
		}))
	}
	return mux
}

type baseKey struct{}

// WithBase returns a context with the service's address as the gateway knows it.
func WithBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, baseKey{}, base)
}

// Base returns the service's address, with wire.Prefix and without a trailing slash: the configured
// one, else the gateway's. It never comes from the Host header.
func (p *Ports) Base(ctx context.Context) string { return Base(p.Settings)(ctx) }

// DownloadLink returns the link to a file in an area, up to its token, in the language of a request
// by a user.
func (p *Ports) DownloadLink(r *http.Request, u users.User, area blob.Area) string {
	return keys.DownloadLink(p.Base(r.Context()), param.Lang(r, u), area)
}

// Base returns a function that works like Ports.Base.
func Base(set service.Settings) func(context.Context) string {
	return func(ctx context.Context) string {
		base, _ := ctx.Value(baseKey{}).(string)
		return cmp.Or(set.PublicURL, base)
	}
}
