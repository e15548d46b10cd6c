// Package web contains the pages for people: templates, style and scripts, and the handlers that
// fill them. Pages are a client of the API: what they show and do, they request from its endpoints
// within this process (see ask.go), so there is no second set of rules. reads_test.go lists the few
// reads that go past the endpoints. Start reading here, then visit.go; each page has a file and a
// template of its name.
package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/account"
	"ferry/shared/api/file"
	"ferry/shared/api/param"
	"ferry/shared/api/upload"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// Endpoint is all pages.
func Endpoint() api.Endpoint { return api.Pages(New) }

// site is what all visits share.
type site struct {
	ports     *api.Ports
	callers   identity.Authenticator
	passwords *identity.Passwords
	tokens    *identity.Tokens
	api       http.Handler // the endpoints that pages call
	assets    *assets
	words     func(lang string) words
}

// view handles a visit. If it returns an error, that becomes a page.
type view func(*visit) error

// views are the pages, by method and name.
func views() map[string]view {
	return map[string]view{
		"GET login":     (*visit).showLogin,
		"POST login":    posted((*visit).login),
		"POST logout":   (*visit).logout,
		"GET forgot":    known((*visit).showForgot),
		"POST forgot":   known(posted((*visit).forgot)),
		"GET password":  known((*visit).showPassword),
		"POST password": known(posted((*visit).changePassword)),
		"GET stop":      known((*visit).showStop),
		"POST stop":     known(posted((*visit).stop)),
		"GET account":   loggedIn((*visit).showAccount),
		"POST account":  loggedIn(posted((*visit).changeAccount)),
		"GET l":         known((*visit).landing),
		"POST l":        known(posted((*visit).unlock)),
		"GET r":         known((*visit).guest),
		"POST r":        known(posted((*visit).openRequest)),
		"GET send":      (*visit).send,
		"GET qr":        (*visit).qr,
		"GET files":     loggedIn((*visit).showFiles),
		"POST files":    loggedIn(posted((*visit).correct)),
		"GET requests":  loggedIn((*visit).showRequests),
	}
}

// New returns the handler. It needs the port Table and the link key, and Blobs for what is in bundles.
func New(p *api.Ports) http.Handler {
	s := newSite(p)
	missing := func(detail string) http.Handler { // for a program, not a page
		return p.Outlet().Handler(func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.NotFound, "%s", detail)
		})
	}
	nothing := missing("no endpoint has this path") // for example, because the id in it is not one
	inside := http.NewServeMux()
	inside.Handle("/", nothing)
	for _, e := range []api.Endpoint{
		account.Change(), account.First(), account.Forget(), account.Me(), account.Stop(), account.Tokens(),
		file.Download(), file.DownloadBackup(), file.Get(), file.List(), file.ListBackup(), file.Sharing(),
		upload.Requests(), upload.Sessions(),
	} {
		e.Mount(inside, p, nothing)
	}
	s.api = api.Exact(inside, nothing)
	mux := http.NewServeMux()
	mux.Handle("GET /static/{version}/{file}", s.assets)
	mux.Handle("/", s.handler(known((*visit).missing)))
	mux.Handle(
		wire.Prefix,
		missing("there is nothing at this address; see "+wire.Prefix+"/openapi.json"),
	)
	mux.Handle("GET /{$}", s.handler((*visit).home))
	for at, f := range views() {
		mux.Handle(strings.Replace(at, " ", " /", 1), s.handler(f))
	}
	return mux
}

func newSite(p *api.Ports) *site {
	return &site{
		ports:     p,
		callers:   p.Credentials(),
		passwords: p.Passwords(),
		tokens:    p.Tokens(),
		assets:    newAssets(p.Look),
		words: remembered(func(lang string) words {
			return wordsOf(lang, p.Sends(files.SMS))
		}),
	}
}

// home leads a browser to the first page. Programs get a text that explains how to use the API.
func (v *visit) home() error {
	if param.Asked(v.r) == param.AsPage {
		return v.to(cmp.Or(v.ports.Look.Home, "send"), nil)
	}
	base := v.ports.Base(v.r.Context())
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintf(v.w, `This is %s, a file-transfer service.

Upload:    curl -u USER -F file=@FILE %[2]s/upload
List:      curl -u USER %[2]s/download/list
Interface: %[2]s/openapi.json
`, v.ports.Look.Title(), base)
	return err
}

// missing answers requests for pages that do not exist. Programs get the envelope.
func (v *visit) missing() error {
	if param.Asked(v.r) != param.AsPage {
		v.again = func(status int, _ error) error {
			return envelope.WriteError(v.w, v.ports.Now(), status)
		}
	}
	return fault.New(fault.NotFound, "there is no such page")
}
