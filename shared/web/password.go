package web

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/users"
)

// changeToken asks the API for a link that changes a password, and returns the link's token.
func (v *visit) changeToken(q question) (string, error) {
	var found envelope.Body
	if _, err := v.ask(q, &found); err != nil {
		return "", err
	}
	u, err := url.Parse(found.LinkURL)
	if err != nil {
		return "", fault.Wrap(err, "reading a change link")
	}
	return u.Query().Get("k"), nil
}

func (v *visit) showForgot() error {
	return v.show(http.StatusOK, "forgot", loginForm{User: v.r.URL.Query().Get("user")})
}

// forgot has a code mailed, and leads to the page where it is entered.
func (v *visit) forgot(form url.Values) error {
	in := loginForm{User: strings.TrimSpace(form.Get("user"))}
	v.again = func(status int, wrong error) error {
		switch status {
		case http.StatusTooManyRequests:
			in.Again = v.ports.Now().Add(fault.Of(wrong).After)
		case http.StatusBadRequest, http.StatusUnauthorized:
			in.Wrong = v.T("forgot.unknown")
		case http.StatusForbidden:
			in.Wrong = v.T("forgot.unreachable")
		default:
			in.Wrong = v.wrong(wrong)
		}
		return v.show(status, "forgot", in)
	}
	if _, valid := users.CanonicalName(in.User); !valid { // no user can have it, so this reveals nothing
		return fault.New(fault.Invalid, "no user can have this name")
	}
	q := url.Values{"u": {in.User}, "lang": {v.Lang}}
	token, err := v.changeToken(question{at: "GET /auth/forget?" + q.Encode()})
	if err != nil {
		return err
	}
	return v.to("password", url.Values{"k": {token}, "u": {in.User}})
}

// passwordForm is what the page for a new password shows.
type passwordForm struct {
	Token, User string
	First       bool // no code is needed
	Code        string
	WrongCode   string
	WrongNew    string
}

// showPassword shows what a change token allows. The link in a mail does not contain the user's
// name: someone who has a code is not told whose it is.
func (v *visit) showPassword() error {
	q := v.r.URL.Query()
	if q.Get("k") == "" {
		return v.to("forgot", nil)
	}
	in := passwordForm{Token: q.Get("k"), User: q.Get("u")}
	if err := v.checkToken(&in); err != nil {
		return err
	}
	switch q.Get("wrong") { // a form that was sent to the API itself leads here
	case "400":
		in.WrongNew = v.T("password.refused")
	case "401", "403":
		in.WrongCode = v.T("password.wrong")
	}
	return v.show(http.StatusOK, "password", in)
}

// checkToken asks what a token allows, without changing anything. If it allows nothing, the page says so.
func (v *visit) checkToken(in *passwordForm) error {
	v.again = func(status int, wrong error) error {
		if status != http.StatusUnauthorized {
			return v.showError(status, wrong)
		}
		return v.show(status, "password-dead", nil)
	}
	var found envelope.Body
	_, err := v.ask(question{
		at:   "POST /auth/change",
		form: url.Values{"k": {in.Token}},
		// A visitor who comes from a mail on another site has not sent a form from there.
		header: http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": nil},
	}, &found)
	if fault.Is(err, fault.Forbidden) { // the code is missing
		return nil
	}
	in.First = err == nil
	if in.First {
		in.User = found.User
	}
	return err
}

// changePassword sets a new password. A user with an invitation or a temporary password is then
// logged in; one with a code is led to the login.
func (v *visit) changePassword(form url.Values) error {
	in := passwordForm{Token: form.Get("k"), User: form.Get("user"), Code: form.Get("code")}
	v.query = url.Values{"k": {in.Token}}
	code := strings.Join(strings.FieldsFunc(in.Code, func(r rune) bool {
		return unicode.IsSpace(r) || r == '-'
	}), "")
	password := form.Get("new")
	v.again = func(status int, wrong error) error {
		if dead := v.checkToken(&in); fault.Is(dead, fault.Unauthorized) {
			return v.show(http.StatusUnauthorized, "password-dead", nil)
		}
		switch status {
		case http.StatusBadRequest:
			in.WrongNew = v.refused(password)
		case http.StatusUnauthorized, http.StatusForbidden:
			in.Code, in.WrongCode = "", v.T("password.wrong")
		default:
			in.WrongNew = v.wrong(wrong)
		}
		return v.show(status, "password", in)
	}
	if password == "" {
		return fault.New(fault.Invalid, "the new password is missing")
	}
	var found envelope.Body
	fields := url.Values{"k": {in.Token}, "p": {code}, "z": {password}}
	if _, err := v.ask(question{at: "POST /auth/change", form: fields}, &found); err != nil {
		return err
	}
	if v.logins && code == "" {
		if err := v.beginAgain(found.User); err != nil {
			return err
		}
		return v.to("send", nil)
	}
	return v.to("login", url.Values{"changed": {"1"}, "user": {found.User}})
}

// refused says what is wrong with a new password.
func (v *visit) refused(password string) string {
	switch n := utf8.RuneCountInString(password); {
	case n < users.ShortestPassword:
		return v.T("password.short", users.ShortestPassword)
	case n > users.LongestPassword:
		return v.T("password.long", users.LongestPassword)
	}
	return v.T("password.easy")
}
