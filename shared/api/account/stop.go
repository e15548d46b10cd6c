package account

import (
	"fmt"
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/notify"
)

// Stop is GET and POST /notifications/stop: with the link at the end of a mail, its
// recipient stops such mails, or resumes them.
func Stop() api.Endpoint { return api.Named("notificationsstop", newStop) }

// newStop returns the handler. It needs the ports Table and Key. A browser gets pages,
// any other client the envelope.
//
// Only a POST changes something, as mail scanners open every link. The URL is the whole
// credential (RFC 8058: mail programs POST to it when their user presses a button), and a POST
// may be repeated. A request costs one call to the table, two if it resumes mail or repeats a
// POST, and none if the token is wrong.
func newStop(p *api.Ports) http.Handler {
	s, outlet := server{p}, p.Outlet()
	outlet.Links, outlet.AnySite, outlet.WriteError = true, true, s.writeError
	return outlet.Handler(s.handle)
}

func isPerson(r *http.Request) bool { return api.Prefers(r, "text/html") != "" }

type server struct{ ports *api.Ports }

func (s server) handle(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	address, err := s.address(r)
	if err != nil {
		return err
	}
	var e notify.Suppression
	if r.Method == http.MethodGet {
		e, _, err = notify.Suppressed(r.Context(), s.ports.Table, address)
	} else {
		e, err = s.change(r, address)
	}
	if err != nil {
		return err
	}
	if isPerson(r) {
		return stopPage(w, notify.TextsOf(api.Lang(r, auth.User{})), address, e)
	}
	return envelope.Write(w, s.ports.Now(), envelope.Success{Description: envelope.Stop})
}

// address returns the address that the request's token is for.
func (s server) address(r *http.Request) (string, error) {
	token, err := api.Required(r, "t", "the token at the end of a mail")
	address, ok := s.ports.Key.StopAddress(token)
	if err == nil && !ok {
		err = fault.New(fault.Unauthorized, "the token is not from one of our mails")
	}
	return address, err
}

// change stops the mails or, with undo in a form, resumes them. An address that is
// suppressed for another reason stays suppressed.
func (s server) change(r *http.Request, address string) (notify.Suppression, error) {
	form, err := api.Form(r, false)
	if err != nil {
		return notify.Suppression{}, err
	}
	if form.Get("undo") != "" {
		return notify.ResumeMail(r.Context(), s.ports.Table, address)
	}
	return notify.StopMail(r.Context(), s.ports.Table, address, s.ports.Now())
}

// writeError tells a person that the link is not valid, or that something went wrong.
func (s server) writeError(w http.ResponseWriter, r *http.Request, status int) error {
	if !isPerson(r) {
		return envelope.WriteError(w, s.ports.Now(), status)
	}
	texts := notify.TextsOf(api.Lang(r, auth.User{}))
	title, text := texts.BadLinkTitle, texts.BadLinkText
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		title, text = texts.FailedTitle, texts.FailedText
	}
	return writePage(w, status, texts.Lang, title, text, "", "")
}

// stopPage shows whether an address gets mail. The owner's opt-out comes first, as only that can
// be changed on the page.
func stopPage(w http.ResponseWriter, texts notify.Texts, address string, e notify.Suppression) error {
	title, text, button, undo := texts.StopTitle, texts.StopText, texts.StopButton, ""
	if e.Stopped != 0 {
		title, text, button, undo = texts.StoppedTitle, texts.StoppedText, texts.ResumeButton, "1"
	} else if e.Refused != "" { // mail came back or was called spam; only an operator can change that
		title, text = texts.RefusedTitle, texts.RefusedText
	}
	return writePage(w, http.StatusOK, texts.Lang, title, fmt.Sprintf(text, address), button, undo)
}

// writePage sends a page with a button, unless its text is empty. undo makes it resume mail.
func writePage(w http.ResponseWriter, status int, lang, title, text, button, undo string) error {
	w.Header().Set("Content-Language", lang)
	return api.WritePage(w, status, "form-action 'self'; base-uri 'none'; ", "stop", map[string]string{
		"Lang": lang, "Title": title, "Text": text, "Button": button, "Undo": undo,
	})
}
