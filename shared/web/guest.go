package web

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"ferry/shared/fault"
	"ferry/shared/links"
	"ferry/shared/wire"
)

// guestPage is what the page of a request shows besides what all sending pages show.
type guestPage struct {
	About  wire.RequestAbout
	Query  url.Values // of the page: the token, and the link's language
	Locked bool       // the password is missing
	Wrong  string     // with the password
	Done   bool       // something has just been sent
}

// Again returns the query of the page.
func (p guestPage) Again() template.URL { return template.URL(p.Query.Encode()) }

// Full reports whether the request takes nothing more.
func (p guestPage) Full() bool {
	none := func(left *int64) bool { return left != nil && *left == 0 }
	return none(p.About.FilesLeft) || none(p.About.BytesLeft)
}

// guest shows what a request asks for, with a form for sending it.
func (v *visit) guest() error {
	q := v.r.URL.Query()
	p, err := v.requestOf(q, "")
	if isLocked(err) { // not a failed login
		p.Locked = true
		return v.show(http.StatusOK, "guest", sendPage{Guest: &p})
	}
	if err != nil {
		return err
	}
	p.Done = q.Has("sent")
	page := v.sender()
	page.Guest = &p
	return v.show(http.StatusOK, "guest", page)
}

// requestOf gets what a request says. If the request takes nothing any more, the page says why; if
// it needs a password, the page asks for it. The guest's secret is passed on to the browser.
func (v *visit) requestOf(q url.Values, password string) (p guestPage, err error) {
	p.Query = picked(q, "lang", "k")
	v.query = p.Query
	v.again = func(status int, wrong error) error {
		if !isLocked(wrong) && !fault.Is(wrong, fault.TooMany) {
			return v.deadOf("request-", status, wrong)
		}
		p.Locked, p.Wrong = true, v.T("guest.wrong")
		if fault.Is(wrong, fault.TooMany) {
			p.Wrong = v.wrong(wrong)
		}
		return v.show(status, "guest", sendPage{Guest: &p})
	}
	var header http.Header
	if password != "" {
		header = http.Header{"Ferry-Link-Password": {password}}
	}
	found, err := v.ask(question{
		at:     "GET /requests/in?" + p.Query.Encode(),
		header: header,
	}, &p.About)
	if err == nil {
		v.w.Header()["Set-Cookie"] = append(v.w.Header()["Set-Cookie"], found.header["Set-Cookie"]...)
	}
	return p, err
}

// isLocked reports whether a link works, but wants a password, or a different one.
func isLocked(err error) bool {
	_, dead := errors.AsType[links.State](err)
	return fault.Is(err, fault.Unauthorized) && !dead
}

// openRequest takes the password of a request. From then on the guest's secret is enough.
func (v *visit) openRequest(form url.Values) error {
	p, err := v.requestOf(form, form.Get("password"))
	if err != nil {
		return err
	}
	return v.to("r", p.Query)
}
