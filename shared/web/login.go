package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/users"
)

// loginForm is what the login page shows, and the page for a forgotten password.
type loginForm struct {
	User, Next, Wrong string
	Note              alert     // what has just happened
	Again             time.Time // when the user may try again
}

func (v *visit) showLogin() error {
	q := v.r.URL.Query()
	to := next(q.Get("next"), "")
	err := v.findLogin()
	if err == nil && !q.Has("changed") {
		return v.to(next(to, "send"), nil)
	}
	in := loginForm{Next: to, User: q.Get("user")}
	if !v.logins {
		in.Wrong = v.T("login.plain")
	}
	_, had := v.r.Cookie(v.cookie.Name)
	switch {
	case q.Has("changed"):
		in.Note = alert{"good", "check", v.T("login.changed")}
	case q.Has("out"):
		in.Note = alert{"good", "check", v.T("login.out")}
	case q.Has("everywhere"):
		in.Note = alert{"good", "check", v.T("login.everywhere")}
	case to != "" && had == nil:
		in.Note = alert{"", "info", v.T("login.ended")}
	}
	return v.show(http.StatusOK, "login", in)
}

// login logs this browser in. A temporary password leads to the page where the user chooses a new one.
func (v *visit) login(form url.Values) error {
	in := loginForm{User: strings.TrimSpace(form.Get("user")), Next: next(form.Get("next"), "")}
	v.query = url.Values{"next": {in.Next}}
	v.again = func(status int, wrong error) error {
		switch {
		case !v.logins:
			in.Wrong = v.T("login.plain")
		case status == http.StatusUnauthorized:
			in.Wrong = v.T("login.wrong")
		case status == http.StatusTooManyRequests:
			in.Again = v.ports.Now().Add(fault.Of(wrong).After)
		default:
			in.Wrong = v.wrong(wrong)
		}
		return v.show(status, "login", in)
	}
	if !v.logins {
		return fault.New(fault.Forbidden, "browsers can log in only over https")
	}
	c := identity.FormCredential(v.r, in.User, form.Get("password"))
	u, err := v.passwords.LoginFirst(v.r.Context(), c)
	if err != nil {
		return err
	}
	if u.State == users.FirstAccess {
		return v.firstAccess(in.User, c.Password)
	}
	if err := v.begin(u); err != nil {
		return err
	}
	return v.to(next(in.Next, "send"), nil)
}

// begin logs a user in on this browser.
func (v *visit) begin(u users.User) error {
	want := identity.APIToken{
		Name:  v.browser(),
		Scope: identity.ScopeAccount,
		Idle:  int64(identity.BrowserIdle.Seconds()),
	}
	token, _, err := v.tokens.Make(v.r.Context(), u, want)
	if err == nil {
		http.SetCookie(v.w, v.cookie.Set(token))
	}
	return err
}

// beginAgain logs a user in whose new password has just ended all logins.
func (v *visit) beginAgain(name string) error {
	v.again = nil
	u, err := v.ports.Users().Get(v.r.Context(), name)
	if err != nil {
		return err
	}
	return v.begin(u)
}

// firstAccess leads new users to the page where they choose their password.
func (v *visit) firstAccess(name, password string) error {
	token, err := v.changeToken(question{
		at:       "POST /auth/first",
		name:     name,
		password: password,
	})
	if err != nil {
		return err
	}
	return v.to("password", url.Values{"k": {token}})
}

// browser names the visitor's browser for the list of logins.
func (v *visit) browser() string {
	agent := v.r.Header.Get("User-Agent")
	named := func(otherwise string, pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Contains(agent, pairs[i]) {
				return pairs[i+1]
			}
		}
		return otherwise
	}
	// The more specific names come first: Edge's agent contains Chrome, and Chrome's contains Safari.
	browser := named(
		"Browser",
		"Edg",
		"Edge",
		"OPR/",
		"Opera",
		"Firefox/",
		"Firefox",
		"FxiOS/",
		"Firefox",
		"Chrome/",
		"Chrome",
		"CriOS/",
		"Chrome",
		"Safari/",
		"Safari",
	)
	system := named(
		"",
		"iPhone",
		"iPhone",
		"iPad",
		"iPad",
		"Android",
		"Android",
		"Windows",
		"Windows",
		"Mac OS X",
		"Mac",
		"CrOS",
		"ChromeOS",
		"Linux",
		"Linux",
	)
	return strings.TrimSuffix(browser+", "+system, ", ")
}

// logout ends the browser's login.
func (v *visit) logout() error {
	for _, token := range v.r.CookiesNamed(v.cookie.Name) {
		if err := v.tokens.Revoke(v.r.Context(), token.Value); err != nil {
			return err
		}
	}
	http.SetCookie(v.w, v.cookie.Set(""))
	return v.to("login", url.Values{"out": {"1"}})
}
