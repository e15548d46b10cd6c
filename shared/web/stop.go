package web

import (
	"net/http"
	"net/url"

	"ferry/shared/fault"
	"ferry/shared/notify"
)

// stopPage is what the page that stops mails shows.
type stopPage struct{ Address, Token, State string }

// showStop shows whether an address gets mail. The link to it is at the end of a mail.
func (v *visit) showStop() error {
	token := v.r.URL.Query().Get("t")
	v.again = v.wrongStop
	address, ok := v.ports.Key.StopAddress(token)
	if !ok {
		return fault.New(fault.Unauthorized, "the token is not from one of our mails")
	}
	e, _, err := notify.Suppressed(v.r.Context(), v.ports.Table, address)
	if err != nil {
		return err
	}
	p := stopPage{Address: address, Token: token, State: "ask"}
	switch {
	case e.Stopped != 0:
		p.State = "stopped"
	case e.Refused != "":
		p.State = "refused"
	}
	return v.show(http.StatusOK, "stop", p)
}

// stop stops the mails to an address, or resumes them.
func (v *visit) stop(form url.Values) error {
	v.again = v.wrongStop
	q := url.Values{"t": {form.Get("t")}}
	v.query = q
	change := question{
		at:   "POST /notifications/stop?" + q.Encode(),
		form: url.Values{"undo": {form.Get("undo")}},
	}
	if _, err := v.ask(change, nil); err != nil {
		return err
	}
	q.Set("lang", v.Lang)
	return v.to("stop", q)
}

// wrongStop says that a link belongs to no address.
func (v *visit) wrongStop(status int, wrong error) error {
	if status == http.StatusUnauthorized || status == http.StatusBadRequest {
		return v.show(status, "stop", stopPage{State: "wrong"})
	}
	return v.showError(status, wrong)
}
