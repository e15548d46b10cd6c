package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/lazy"
	"ferry/shared/notify/texts"
	"ferry/shared/users"
)

// visit is one request for a page.
type visit struct {
	*site
	words
	w      http.ResponseWriter
	r      *http.Request
	cookie identity.Cookie
	logins bool              // browsers can log in here
	who    identity.Identity // set by findLogin
	store  string            // the origin of the store, if the page needs it
	frames bool              // the page has frames of this site
	query  url.Values        // of the page that a form leads to, if that page has its own
	wrongs correction        // what is wrong with a correction
	// again shows the form that was sent with what is wrong in it. If it is nil, a page shows the error.
	again func(status int, wrong error) error
	err   error
}

// handler returns the handler of a view. Each visit has an outlet of its own, which knows how to
// show the visit's errors.
func (s *site) handler(f view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, outlet := s.visit(r), s.ports.Outlet()
		outlet.Links, outlet.WriteError = true, v.writeError
		outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
			v.w, v.r = w, r
			v.err = v.admit()
			if v.err == nil {
				v.err = f(v)
			}
			return v.err
		}).ServeHTTP(w, r)
	})
}

func (s *site) visit(r *http.Request) *visit {
	v := &visit{site: s, words: s.words(langOf(r, users.User{}))}
	v.cookie, v.logins = s.ports.Cookie(r.Context())
	return v
}

// admit refuses requests from other sites' pages, whatever CORS allows them.
func (v *visit) admit() error {
	if !v.cookie.IsOwn(v.r) {
		return fault.New(fault.Forbidden, "a web page of another site may not do this")
	}
	if l, ok := texts.Find(v.r.URL.Query().Get("language")); ok &&
		v.r.Method == http.MethodGet {
		http.SetCookie(v.w, &http.Cookie{
			Name:     langCookie,
			Value:    l.Lang,
			Path:     v.cookie.Path,
			MaxAge:   365 * 24 * 60 * 60,
			Secure:   v.cookie.Secure,
			HttpOnly: true,
			SameSite: http.SameSiteLaxMode,
		})
	}
	return nil
}

// langCookie keeps the language that a visitor chose.
const langCookie = "ferry-lang"

// langOf returns the language of a visit: the one that the visitor chose, or else that of the link
// that led here, of the account, or of the browser, in this order.
func langOf(r *http.Request, u users.User) string {
	q := r.URL.Query()
	chosen := q.Get("language")
	if c, err := r.Cookie(langCookie); err == nil && chosen == "" {
		chosen = c.Value
	}
	return param.LangOf(cmp.Or(chosen, q.Get("lang")), r, u)
}

// findLogin finds who is logged in. It makes one call to the table. Without a valid login it
// returns an Unauthorized fault.
func (v *visit) findLogin() error {
	if !v.logins {
		return errLoggedOut
	}
	found, err := v.cookie.Read(v.r)
	if err == nil && found.Kind == identity.None {
		err = errLoggedOut
	}
	if err != nil {
		return err
	}
	who, err := v.callers.Check(v.r.Context(), found)
	if err == nil && !who.Scope.IsLogin() { // an API token is not a browser's login, and may do less
		err = errLoggedOut
	}
	if err != nil {
		return err
	}
	v.who = who
	v.words = v.site.words(langOf(v.r, who.User))
	if v.r.Method == http.MethodGet { // the cookie's lifetime restarts with each use
		http.SetCookie(v.w, v.cookie.Set(found.Bearer))
	}
	return nil
}

var errLoggedOut = fault.New(fault.Unauthorized, "you are not logged in")

// known is a view for anybody. Its header shows who is logged in. That costs a call to the table if
// there is a cookie. If the call fails, the header shows nobody. The log names nobody for the request.
func known(f view) view {
	return func(v *visit) error {
		caller := fault.CallerOf(v.r.Context())
		before := *caller
		_ = v.findLogin()
		*caller = before
		return f(v)
	}
}

// loggedIn is a view for users with an account. Others are led to the login, and then back.
func loggedIn(f view) view {
	return func(v *visit) error {
		err := v.findLogin()
		if fault.Is(err, fault.Unauthorized) {
			next := strings.TrimPrefix(v.r.URL.Path, "/")
			if v.r.Method == http.MethodGet && v.r.URL.RawQuery != "" {
				next += "?" + v.r.URL.RawQuery
			}
			return v.to("login", url.Values{"next": {next}})
		}
		if err != nil {
			return err
		}
		return f(v)
	}
}

// to redirects to another page. The address is relative: only the browser knows what comes before it.
func (v *visit) to(page string, query url.Values) error {
	if len(query) > 0 {
		page += "?" + query.Encode()
	}
	v.w.Header().Set("Location", page)
	v.w.Header().Set("Cache-Control", "no-store")
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// next returns the page that a form leads to: one of this site, never another address.
func next(text, otherwise string) string {
	if pageAddress().MatchString(text) {
		return text
	}
	return otherwise
}

// posted is a view for a form that was sent.
func posted(f func(*visit, url.Values) error) view {
	return func(v *visit) error {
		form, err := param.Form(v.r, true)
		if err != nil {
			return err
		}
		return f(v, form)
	}
}

// compressed lists the pages that are compressed. Pages that contain a secret are not compressed:
// someone who could have such a page opened with guesses in its query, and could see its size,
// would find the secret (BREACH). Of the account pages only "send" contains no secret. Pages of
// links contain only the secret in their own address.
var compressed = []string{"forgot", "guest", "intro", "landing", "login", "picture", "send"}

// show sends a page: a template of templates/ and the data that it shows.
func (v *visit) show(status int, name string, data any) error {
	var b bytes.Buffer
	if err := templateOf(name).Execute(&b, v.page(name, data)); err != nil {
		return fmt.Errorf("filling in the page %s: %w", name, err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", v.Lang)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", v.policy())
	text := b.Bytes()
	if slices.Contains(compressed, name) {
		h.Add("Vary", "Accept-Encoding")
		if param.TakesGzip(v.r) { // never nil: compression shrinks any page
			text = packed(text, gzip.DefaultCompression)
			h.Set("Content-Encoding", "gzip")
		}
	}
	return envelope.WriteText(v.w, status, text)
}

// policy allows what pages consist of, and nothing else: no inline script or style, no frame, and
// besides the service itself only the store, which holds the bytes of files.
func (v *visit) policy() string {
	from := "'self'"
	if v.store != "" {
		from += " " + v.store
	}
	frames := ""
	if v.frames {
		frames = "; frame-src 'self'"
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src " +
		from +
		"; img-src " + from + " blob:; media-src " +
		from + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'" + frames
}

// writeError shows the form again, or a page that says what went wrong.
func (v *visit) writeError(w http.ResponseWriter, r *http.Request, status int) error {
	v.w, v.r = w, r
	if again := v.again; again != nil && status < http.StatusInternalServerError {
		v.again = nil
		return again(status, v.err)
	}
	return v.showError(status, v.err)
}

// showError shows a page that says what went wrong.
func (v *visit) showError(status int, err error) error {
	wrong := v.wrong(err)
	if err == nil { // it was refused before it reached a view
		wrong = v.first(fmt.Sprintf("error.%d", status))
	}
	return v.show(status, "error", map[string]any{"Status": status, "Wrong": wrong})
}

// wrong says in the visitor's language what went wrong.
func (v *visit) wrong(err error) string {
	f := fault.Of(err)
	switch {
	case f == nil || f.Kind == fault.Internal:
		return v.T("error.internal")
	case f.Kind == fault.TooMany:
		return v.T("error.wait", v.Wait(f.After))
	}
	return v.first("error.parameter."+f.Parameter, fmt.Sprintf("error.%d", f.Kind))
}

var pageAddress = lazy.Regexp(`^[a-z]+(\?[A-Za-z0-9._~%&=+-]*)?$`)
