// Package api says what an endpoint is: a name, the routes it answers, and one
// constructor that makes its handler from ports, for Lambda, for the one-process
// server and for tests alike. It may import auth, envelope and the ports, and no
// backend. Start reading with Endpoint; routes.go lists all routes.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
)

// Prefix is before every path.
const Prefix = "/v1"

// Route is a method and a path below Prefix. Path may have a segment {id}.
type Route struct{ Method, Path string }

// Endpoint is one Lambda function and one set of routes.
type Endpoint struct {
	Name   string
	Routes []Route
	New    func(*Ports) http.Handler
}

// Handler returns the endpoint's routes as a handler; anything else is
// answered by fallback.
func (e Endpoint) Handler(p *Ports, fallback http.Handler) http.Handler {
	mux := http.NewServeMux()
	e.Mount(mux, p, fallback)
	mux.Handle("/", fallback)
	return Exact(mux, fallback)
}

// Exact answers by fallback what an http.ServeMux would redirect: paths with
// empty or dotted segments. A redirect has no envelope, and a client that does
// not follow it takes an upload for done.
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

// Mount adds the endpoint's routes to a mux. HEAD for a path that has GET alone
// is answered by fallback: a mux would take it for a GET, with its effects.
func (e Endpoint) Mount(mux *http.ServeMux, p *Ports, fallback http.Handler) {
	h := e.New(p)
	for _, r := range e.Routes {
		mux.Handle(r.Method+" "+Prefix+r.Path, h)
		if r.Method == http.MethodGet && !slices.Contains(e.Routes, Route{http.MethodHead, r.Path}) {
			mux.Handle(http.MethodHead+" "+Prefix+r.Path, fallback)
		}
	}
}

// Settings are what an operator decides. The zero value works, but for the
// PublicURL.
type Settings struct {
	// PublicURL is the service's address with Prefix and without a slash at
	// the end. Empty means that the gateway tells it with each request.
	PublicURL string
	// PhoneRegion is the region of numbers without a country code, such as
	// IT. Empty means that there must be one.
	PhoneRegion string
	HideUsers   bool
	// MaxBody is the most bytes of a request's body; 0 is unbounded.
	MaxBody int64
	// MaxUploads is the most uploads at once in a process; 0 is unbounded,
	// as it is for a function, which has one request at a time.
	MaxUploads int
	// RedirectOver is the size in bytes from which a download is a redirect
	// to the store; 0 is never.
	RedirectOver int64
	// Retention is for how many days files stay in the user area, and then in
	// the backup area; 0 is for ever.
	Retention struct{ KeepDays, BackupDays int64 }
	// Notices are the most of a user in an hour and in a day, and to one
	// recipient in a day; 0 is unbounded.
	Notices struct{ PerHour, PerDay, PerRecipient int64 }
	// Events records public events: somebody listens.
	Events bool
}

// Ports are what a handler may reach. Those that an endpoint does not ask for
// are nil.
type Ports struct {
	auth.Ports
	Blobs blob.Store
	Parts blob.Parts // of the same store
	Log   *slog.Logger
	// Notify is called after something was put in the outbox; never nil.
	Notify func()
	Settings
}

// Outlet is the way a response leaves.
func (p *Ports) Outlet() envelope.Outlet { return envelope.Outlet{Now: p.Now, Log: p.Log} }

// Authenticated returns the handler of an endpoint for callers who are logged in.
func (p *Ports) Authenticated(f func(http.ResponseWriter, *http.Request, auth.User) error) http.Handler {
	check := auth.New(p.Ports)
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.Request(r)
		if err != nil {
			return err
		}
		return f(w, r, u)
	})
}

type baseKey struct{}

// WithBase tells the requests under ctx the service's address as the gateway knows it.
func WithBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, baseKey{}, base)
}

// Base is the service's address, with Prefix and without a slash at the end:
// the configured one, else the gateway's own. Never the Host header's.
func (p *Ports) Base(ctx context.Context) string {
	if p.PublicURL != "" {
		return p.PublicURL
	}
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}

// Languages are those that Ferry speaks; the first is the default.
func Languages() []string { return []string{"en", "it", "es", "fr", "de"} }

// Lang is the language for a request: that of its lang parameter, else the
// user's, else the best of Accept-Language, else English.
func Lang(r *http.Request, u auth.User) string { return LangOf(r.URL.Query().Get("lang"), r, u) }

// LangOf is Lang for a request that says its lang elsewhere than in the query.
func LangOf(lang string, r *http.Request, u auth.User) string {
	for _, tag := range []string{lang, u.Lang} {
		if lang, ok := supported(tag); ok {
			return lang
		}
	}
	for _, v := range preferences(r.Header, "Accept-Language") {
		if lang, ok := supported(v.value); ok {
			return lang
		}
	}
	return Languages()[0]
}

func supported(tag string) (string, bool) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	return primary, slices.Contains(Languages(), primary)
}
