// Package api defines endpoints: a name, routes, and one constructor that makes the
// handler from ports, for Lambda, for the one-process server and for tests alike. Start
// reading with Endpoint; routes.go lists all routes.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
)

// Prefix is the beginning of every path.
const Prefix = "/v1"

// Route is a method and a path after Prefix, which may have a segment such as {id}, and the scope
// that a caller needs, or none if the route asks for no login.
type Route struct {
	Method, Path string
	Needs        auth.Scope
}

// pattern is the route in the form of an http.ServeMux, below a prefix.
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

// Exact has fallback answer paths with empty or dotted segments, which an http.ServeMux
// would redirect. A redirect has no envelope, and a client that does not follow it
// would believe that its upload succeeded.
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

// Mount adds the endpoint's routes to a mux. If a path has GET but not HEAD, fallback
// answers HEAD: a mux would treat it as a GET, with its effects. It may do so with pages, which
// have none; the inbox, also a page, could not stand beside HEAD /{page}.
func (e Endpoint) Mount(mux *http.ServeMux, p *Ports, fallback http.Handler) {
	h := e.New(p)
	for _, r := range e.Routes {
		if e.Prefix == "" && r.Method == http.MethodHead {
			continue
		}
		mux.Handle(r.pattern(e.Prefix), h)
		head := func(other Route) bool { return other.Method == http.MethodHead && other.Path == r.Path }
		if r.Method == http.MethodGet && !slices.ContainsFunc(e.Routes, head) {
			mux.Handle(http.MethodHead+" "+e.Prefix+r.Path, fallback)
		}
	}
}

// Settings are an operator's choices. The zero value works, except for PublicURL.
type Settings struct {
	// PublicURL is the service's address, with Prefix and without a trailing slash.
	// If it is empty, the gateway gives the address with each request.
	PublicURL string
	// PhoneRegion is the region of numbers without a country code, such as IT. If it
	// is empty, numbers must have a country code.
	PhoneRegion string
	// SMSCountries are the countries that get text messages, such as IT; if it is empty, all do.
	// With NoSMS none does: nothing sends them.
	SMSCountries []string
	NoSMS        bool
	// ASCIIMail refuses addresses that are not ASCII before the @: SES takes no others.
	ASCIIMail bool
	HideUsers bool
	// MaxBody is the most bytes in a request's body; 0 is no limit.
	MaxBody int64
	// MaxUploads is the most concurrent uploads and parts in a process; 0 is no limit.
	MaxUploads int
	// RedirectOver is the file size in bytes above which a download is redirected to
	// the store; 0 is never.
	RedirectOver int64
	// LinkBytes is how many bytes a link gives out in an hour; 0 is no limit.
	LinkBytes int64
	// Retention is for how many days files stay in the user area, and then in the
	// backup area; 0 is for ever.
	Retention struct{ KeepDays, BackupDays int64 }
	// BackupClass is the S3 storage class of files over 256 KiB in the backup area:
	// STANDARD or GLACIER_IR; empty is STANDARD.
	BackupClass string
	// Movers is how many files a sweep moves at the same time.
	Movers int
	// Notices limits the notices that a user causes in an hour and in a day, and
	// those to one recipient in a day; 0 is no limit.
	Notices struct{ PerHour, PerDay, PerRecipient int64 }
	// Events turns on the recording of public events.
	Events bool
	// PlainLogin lets browsers log in without https, where others could read the login.
	PlainLogin bool
	Look       Look
}

// Ports are what a handler may use. Those that an endpoint does not need are nil.
type Ports struct {
	auth.Ports
	Blobs blob.Store
	Parts blob.Parts // of the same store
	Log   *slog.Logger
	// Notify is called after a notice was put in the outbox; never nil.
	Notify func()
	Slots  *Slots // nil is no limit
	// Known tells which bytes need not be verified; nil knows none.
	Known blob.Knower
	Free  func() (int64, error) // bytes that uploads may still take; nil is no limit
	// Lingering is as in envelope.Outlet.
	Lingering chan struct{}
	// CountWait and LinkMemory are as in links.Config.
	CountWait, LinkMemory time.Duration
	// Guests returns the guest who has the token of a request's link. It is nil where guests can do
	// nothing.
	Guests func(w http.ResponseWriter, r *http.Request, token string) (auth.Identity, error)
	// Mover is as in files.Config.
	Mover func(ctx context.Context, owner string, id int64) error
	Settings
	domains sync.Map
}

// Domain returns what build makes of the ports. The first endpoint that needs a domain builds it,
// and all others on these ports get the same, with its caches. From then on the ports must not
// change.
func Domain[T any](p *Ports, build func(*Ports) T) T {
	made, _ := p.domains.LoadOrStore(reflect.TypeFor[T](), sync.OnceValue(func() any { return build(p) }))
	return made.(func() any)().(T)
}

// Clone returns a copy whose domains are not built yet.
func (p *Ports) Clone() *Ports {
	return &Ports{
		Ports: p.Ports, Blobs: p.Blobs, Parts: p.Parts, Log: p.Log, Notify: p.Notify, Slots: p.Slots, Known: p.Known, Free: p.Free,
		Lingering: p.Lingering,
		CountWait: p.CountWait, LinkMemory: p.LinkMemory, Guests: p.Guests, Mover: p.Mover, Settings: p.Settings,
	}
}

// Outlet returns an Outlet with the ports' clock, log and address.
func (p *Ports) Outlet() envelope.Outlet {
	return envelope.Outlet{Now: p.Now, Log: p.Log, Base: p.Base, Lingering: p.Lingering}
}

// Handler handles a request of an authenticated caller.
type Handler = func(http.ResponseWriter, *http.Request, auth.Identity) error

// Authenticated returns a handler for callers with a valid credential, whose scope allows the
// route. A mux must have found the handler: it says which route this is.
func (p *Ports) Authenticated(f Handler) http.Handler { return p.AuthenticatedTo(p.Outlet(), f) }

// AuthenticatedTo is Authenticated with another outlet than the ports'.
func (p *Ports) AuthenticatedTo(outlet envelope.Outlet, f Handler) http.Handler {
	check, needs := auth.New(p.Ports), needs()
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		id, err := p.identify(w, r, check)
		if err == nil {
			err = id.Allow(needs[r.Pattern])
		}
		if err != nil {
			return err
		}
		return f(w, r, id)
	})
}

// identify returns who calls: by the Authorization header or, without one, by a browser's cookie.
func (p *Ports) identify(w http.ResponseWriter, r *http.Request, check *auth.Authenticator) (auth.Identity, error) {
	c := auth.Read(r)
	if cookie, ok := p.Cookie(r.Context()); ok && c.Kind == "" {
		found, err := cookie.Read(r)
		if err != nil {
			return auth.Identity{}, err
		}
		if found.Kind != "" {
			c = found
		}
	}
	if p.Guests != nil && auth.IsRequest(c.Bearer) {
		return p.Guests(w, r, c.Bearer)
	}
	return check.Check(r.Context(), c)
}

// Cookie returns the cookie of browsers that are logged in; ok is false if they cannot log in here.
func (p *Ports) Cookie(ctx context.Context) (c auth.Cookie, ok bool) {
	return auth.CookieOf(p.Base(ctx), p.PlainLogin)
}

// ByRoute is Authenticated for an endpoint with a handler for each method and path after Prefix.
// A query parameter that is not among these, nor lang, is a 400.
func (p *Ports) ByRoute(handlers map[string]Handler, query ...string) http.Handler {
	mux := http.NewServeMux()
	for route, f := range handlers {
		mux.Handle(strings.Replace(route, " ", " "+Prefix, 1), p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
			if err := OnlyKnown(r, query...); err != nil {
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

// Base returns the service's address, with Prefix and without a trailing slash: the configured
// one, else the gateway's. It never comes from the Host header.
func (p *Ports) Base(ctx context.Context) string {
	if p.PublicURL != "" {
		return p.PublicURL
	}
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}

// Languages returns the languages that Ferry speaks; the first is the default.
func Languages() []string { return []string{"en", "it", "es", "fr", "de"} }

// Lang returns the language for a request: its lang parameter, else the user's language,
// else the best of Accept-Language, else English.
func Lang(r *http.Request, u auth.User) string { return LangOf(r.URL.Query().Get("lang"), r, u) }

// LangOf is Lang for a request whose lang parameter is not in the query.
func LangOf(lang string, r *http.Request, u auth.User) string {
	for _, tag := range []string{lang, u.Lang} {
		if lang, ok := Language(tag); ok {
			return lang
		}
	}
	for _, v := range preferences(r.Header, "Accept-Language") {
		if lang, ok := Language(v.value); ok {
			return lang
		}
	}
	return Languages()[0]
}

// Language returns the language of a tag such as de-AT. ok is false if Ferry does not
// speak it.
func Language(tag string) (lang string, ok bool) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	return primary, slices.Contains(Languages(), primary)
}
