package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/notify"
)

// Stop is GET and POST /notifications/stop: with the link at the end of a mail, its
// recipient stops such mails, or resumes them.
func Stop() api.Endpoint { return api.Named("notificationsstop", newStop) }

// newStop returns the handler. It needs the ports Table and Key. A browser is redirected to a page;
// any other client gets the envelope.
//
// Only a POST changes anything, because mail scanners open every link. The URL is the whole
// credential (RFC 8058: mail programs POST to it when their user presses a button), and a POST may
// be repeated. A POST costs one call to the table, two if it resumes mail, and none if the token is
// wrong.
func newStop(p *api.Ports) http.Handler {
	outlet := p.Outlet()
	outlet.Links, outlet.AnySite = true, true
	return outlet.Handler(server{p}.stop)
}

func (s server) stop(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", param.VaryByShape)
	isPage, changes := isPerson(r), r.Method == http.MethodPost
	if changes || !isPage { // the page itself says what is wrong with a token
		address, err := s.address(r)
		if err == nil && changes {
			err = s.changeMail(r, address)
		}
		if err != nil {
			return err
		}
	}
	if isPage {
		return api.ToPage(w, 1, "stop", r.URL.Query())
	}
	return envelope.Write(w, s.Now(), envelope.Body{Description: envelope.Stop})
}

// address returns the address that the request's token is for.
func (s server) address(r *http.Request) (string, error) {
	token, err := param.Token(r, "t", "the token at the end of a mail")
	address, ok := s.Key.StopAddress(token)
	if err == nil && !ok {
		err = fault.New(fault.Unauthorized, "the token is not from one of our mails")
	}
	return address, err
}

// changeMail stops the mails or, with undo in a form, resumes them. An address that is
// suppressed for another reason stays suppressed.
func (s server) changeMail(r *http.Request, address string) error {
	form, err := param.Form(r, false)
	if err != nil {
		return err
	}
	if form.Get("undo") != "" {
		return notify.ResumeMail(r.Context(), s.Table, address)
	}
	return notify.StopMail(r.Context(), s.Table, address, s.Now())
}
