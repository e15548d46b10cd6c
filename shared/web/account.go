package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// accountPage is what the account page shows.
type accountPage struct {
	Account wire.Account
	Devices []wire.Token                           // where the user is logged in
	Tokens  []wire.Token                           // for programs
	Made    wire.Token                             // the token just made, shown this once
	Want    wire.NewToken                          // the new token as typed
	Wrong   struct{ Name, Token, Old, New string } // what is wrong with the entries in the page's forms
	Note    alert
}

func (v *visit) showAccount() error {
	p := accountPage{}
	if v.r.URL.Query().Has("changed") {
		p.Note = alert{"good", "check", v.T("account.changed")}
	}
	return v.account(http.StatusOK, p)
}

// account shows the page with what the API says about the account.
func (v *visit) account(status int, p accountPage) error {
	if _, err := v.ask(question{at: "GET /me"}, &p.Account); err != nil {
		return err
	}
	var all struct {
		Tokens []wire.Token `json:"tokens"`
	}
	if _, err := v.ask(question{at: "GET /tokens"}, &all); err != nil {
		return err
	}
	for _, t := range all.Tokens {
		switch {
		case !identity.Scope(t.Scope).IsLogin():
			p.Tokens = append(p.Tokens, t)
		case t.This: // it comes first
			p.Devices = slices.Insert(p.Devices, 0, t)
		default:
			p.Devices = append(p.Devices, t)
		}
	}
	return v.show(status, "account", p)
}

// changeAccount does what one of the page's forms asks for.
func (v *visit) changeAccount(form url.Values) error {
	switch form.Get("do") {
	case "token":
		return v.makeToken(wire.NewToken{
			Name:    form.Get("name"),
			Scope:   form.Get("scope"),
			Expires: form.Get("expires"),
		})
	case "end":
		_, err := v.ask(question{at: "DELETE /tokens/" + url.PathEscape(form.Get("id"))}, nil)
		if err == nil || fault.Is(err, fault.NotFound) { // it has already ended
			return v.to("account", nil)
		}
		return err
	case "everywhere":
		if _, err := v.ask(question{at: "DELETE /tokens?only=logins"}, nil); err != nil {
			return err
		}
		http.SetCookie(v.w, v.cookie.Set(""))
		return v.to("login", url.Values{"everywhere": {"1"}})
	case "tokens":
		if _, err := v.ask(question{at: "DELETE /tokens?only=programs"}, nil); err != nil {
			return err
		}
		return v.to("account", nil)
	case "password":
		return v.replacePassword(wire.NewPassword{Old: form.Get("old"), New: form.Get("new")})
	}
	return fault.New(fault.Invalid, "the form asks for an unknown action")
}

// makeToken makes an API token. It shows the page without a redirect, because the token cannot be read again.
func (v *visit) makeToken(in wire.NewToken) error {
	in.Name = strings.TrimSpace(in.Name)
	v.again = func(status int, wrong error) error {
		p := accountPage{Want: in}
		switch f := fault.Of(wrong); {
		case f != nil && f.Parameter == "name":
			p.Wrong.Name = v.T("account.wrong-name", identity.MaxTokenName)
		case status == http.StatusConflict:
			p.Wrong.Token = v.T("account.full", identity.MaxTokens)
		default:
			p.Wrong.Token = v.wrong(wrong)
		}
		return v.account(status, p)
	}
	if identity.Scope(in.Scope).IsLogin() { // only the login page makes logins
		return fault.Parameter("scope", "scope must be upload, download or all")
	}
	var p accountPage
	if _, err := v.ask(question{at: "POST /tokens", json: in}, &p.Made); err != nil {
		return err
	}
	return v.account(http.StatusCreated, p)
}

// replacePassword sets a new password, which ends all logins. It then logs this browser in again.
func (v *visit) replacePassword(in wire.NewPassword) error {
	v.again = func(status int, wrong error) error {
		var p accountPage
		switch status {
		case http.StatusForbidden:
			p.Wrong.Old = v.T("account.wrong-old")
		case http.StatusBadRequest:
			p.Wrong.New = v.refused(in.New)
		default:
			p.Wrong.Old = v.wrong(wrong)
		}
		return v.account(status, p)
	}
	if _, err := v.ask(question{at: "POST /me/password", json: in}, nil); err != nil {
		return err
	}
	if err := v.beginAgain(v.who.Name); err != nil {
		return err
	}
	return v.to("account", url.Values{"changed": {"1"}})
}

// Used returns how much of a quota is used, as a number from 0 to 100.
func (p page) Used(q wire.Quota) int64 { return min(100, q.Used/max(1, q.Limit/100)) }

// Messages says how many messages the account may still send.
func (p page) Messages(n wire.Notices) string {
	left, key := n.Day, "account.today"
	if n.Hour != nil && (left == nil || n.Hour.Left < left.Left) {
		left, key = n.Hour, "account.hour"
	}
	if left == nil {
		return p.T("account.unlimited")
	}
	return p.T(key, p.N("account.messages", left.Left))
}

// Last says when a device or a token was last used. That is known only to the day.
func (p page) Last(t wire.Token) string {
	used := t.Used
	if used.IsZero() && identity.Scope(t.Scope).IsLogin() {
		used = t.Created
	}
	switch {
	case t.This:
		return p.T("account.used", p.T("time.now"))
	case used.IsZero():
		return p.T("account.unused")
	case p.Now.Sub(used) < 24*time.Hour:
		return p.T("account.lately")
	}
	return p.T("account.used", p.Relative(used, p.Now))
}

// IsPhone reports whether a device is a phone, judging by its name.
func (page) IsPhone(t wire.Token) bool {
	return strings.HasSuffix(t.Name, "iPhone") || strings.HasSuffix(t.Name, "Android")
}

// ending is a token, and the verb for ending it.
type ending struct {
	Verb  string
	Token wire.Token
}

// Ending returns the confirmation that is shown before a token is ended.
func (p page) Ending(verb string, t wire.Token) page { return p.With(ending{verb, t}) }

// Scopes returns the scopes that a new token may have.
func (page) Scopes() []string { return []string{"upload", "download", "all"} }

// Times returns the lifetimes that a new token may have. An empty one means that it never expires.
func (page) Times() []string { return []string{"30d", "90d", "365d", ""} }

// Chosen returns the lifetime that is selected in the form.
func (page) Chosen(want wire.NewToken) string {
	if want.Scope == "" { // nothing was sent yet
		return "90d"
	}
	return want.Expires
}
