package upload

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/wire"
)

// GuestHeader is the header with the secret that a guest got with the first answer; a browser's
// cookie may have the secret too. A client that shows it sees what the guest has sent, and can
// resume the guest's sessions.
const GuestHeader = "Ferry-Guest"

// identify returns the guest who holds the token of a request's link, and puts the guest's secret
// in the answer's header. It makes one call to the table, or two if it checks a password.
func (h handler) identify(
	w http.ResponseWriter,
	r *http.Request,
	token string,
) (identity.Identity, error) {
	_, id, err := h.find(w, r, token)
	return id, err
}

// find is identify, but also returns the request.
func (h handler) find(
	w http.ResponseWriter,
	r *http.Request,
	token string,
) (q links.Request, id identity.Identity, err error) {
	q, maker, err := h.links.FindRequest(r.Context(), token)
	if err != nil {
		return q, id, err
	}
	caller := fault.CallerOf(r.Context())
	caller.Login = "request"
	secret, known := h.secret(r, q)
	if !known && q.Password != "" {
		err = param.CheckPassword(
			w,
			r,
			h.passwords,
			"request#"+q.ID,
			q.Password,
			"curl -u :PASSWORD",
		)
		if err != nil {
			return q, id, err
		}
	}
	caller.Accept(q.Owner)
	if !known {
		nonce, err := keys.RandomToken(h.ports.Random)
		if err != nil {
			return q, id, err
		}
		secret = h.guestSecret(q, nonce)
	}
	w.Header().Set(GuestHeader, secret)
	return q, identity.Identity{Scope: identity.ScopeGuest, Guest: &identity.Guest{
		Owner:   maker,
		Request: q.ID,
		ID:      keys.HashToken(secret),
		Source:  identity.Source(r),
	}}, nil
}

// guestSecret returns the secret of a guest. The signature covers the request's password. So once a
// password is set or changed, earlier guests must know the new one too.
func (h handler) guestSecret(q links.Request, nonce string) string {
	return nonce + "." + h.ports.Key.Part("guest", q.ID, q.Password, nonce)
}

// secret returns the secret that a guest shows, and whether it is valid for this request.
func (h handler) secret(r *http.Request, q links.Request) (secret string, known bool) {
	secret = r.Header.Get(GuestHeader)
	own := h.cookie(r)
	sent := r.CookiesNamed(own.For(GuestHeader).Name)
	if secret == "" && len(sent) == 1 && !isForged(r, own) { // a neighbour may have set a second one
		secret = sent[0].Value
	}
	nonce, signature, _ := strings.Cut(secret, ".")
	return secret, h.ports.Key.IsPart(signature, "guest", q.ID, q.Password, nonce)
}

// isForged reports whether a page of another origin sends a change. Such a page may know the
// request's token, but it must not use or replace the secret that the browser keeps for the
// service's own pages.
func isForged(r *http.Request, own identity.Cookie) bool {
	return !own.IsOwn(r) && r.Header.Get("Origin")+r.Header.Get("Sec-Fetch-Site") != "" // a program sends neither
}

// setCookie lets a browser keep the guest's secret, and send it when a link in a mail is opened.
func (h handler) setCookie(w http.ResponseWriter, r *http.Request) {
	if own := h.cookie(r); !isForged(r, own) {
		http.SetCookie(w, own.For(GuestHeader).Set(w.Header().Get(GuestHeader)))
	}
}

// cookie returns the login's cookie; the guest's cookie follows the same rules.
func (h handler) cookie(r *http.Request) identity.Cookie {
	own, _ := identity.CookieOf(h.ports.Base(r.Context()), true)
	return own
}

// guestMay refuses a guest's session that asks for something only users may have. Only guests may
// set the parameter by.
func guestMay(u identity.Identity, in wire.NewSession) error {
	if u.Guest == nil {
		if in.By != "" {
			return fault.Parameter("by", "the parameter by is only for guests")
		}
		return nil
	}
	for _, o := range in.Options() {
		if o.Is&wire.Guest == 0 && len(o.Texts()) > 0 {
			return notForGuests(o.Name)
		}
	}
	return called(u, in.By)
}

// called stores the name that a guest gives, and checks it.
func called(u identity.Identity, name string) error {
	u.Guest.Name = name
	return checkLine("by", name)
}

func notForGuests(name string) error {
	return fault.Parameter(
		name, "the parameter %s is not for guests: you can add files, and nothing else", name,
	)
}

// in is /requests/in: what a guest sees of a request, and where a guest sends files.
func (h requests) in(w http.ResponseWriter, r *http.Request) error {
	if path := "/requests/in"; !slices.Contains(api.Methods(path), r.Method) { // /requests/{id} has others
		return api.NotAllowed(path)
	}
	token, err := param.Token(r, "k", "the request's token")
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet && param.Asked(r) == param.AsPage {
		return api.ToPage(w, 1, "r", pageQuery(r))
	}
	err = param.OnlyKnown(r, append(wire.OptionNames(wire.Guest), "k", "file")...)
	if err != nil {
		return err
	}
	q, id, err := h.find(w, r, token)
	if err != nil {
		return err
	}
	h.setCookie(w, r)
	if err := called(id, r.URL.Query().Get("by")); err != nil {
		return err
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return h.about(w, r, q, id)
	}
	page, err := h.take(w, r, id, &q)
	if err != nil {
		return err
	}
	if param.Asked(r) == param.AsPage { // the form of a browser without scripts
		q := pageQuery(r)
		q.Set("sent", strconv.Itoa(len(page.Files)))
		return api.ToPage(w, 1, "r", q)
	}
	return writeSent(w, page.Files...)
}

// about shows a request to a guest. It costs one call if the guest is known from an earlier
// request, and none otherwise.
func (h requests) about(
	w http.ResponseWriter,
	r *http.Request,
	q links.Request,
	u identity.Identity,
) error {
	out := wire.RequestAbout{
		Maker:     q.Owner,
		Title:     q.Title,
		Message:   q.Message,
		Expires:   param.Time(q.Expires),
		Protected: q.Password != "",
	}
	if q.MaxBytes > 0 {
		out.BytesLeft = new(max(0, q.MaxBytes-q.Bytes))
	}
	if q.MaxFiles > 0 {
		out.FilesLeft = new(max(0, q.MaxFiles-q.Files))
	}
	if _, known := h.secret(r, q); known {
		var err error
		if out.Sent, err = h.links.SentBy(r.Context(), files.ByOf(u)); err != nil {
			return err
		}
	}
	return envelope.WriteJSON(w, http.StatusOK, out)
}

// formOverhead is how much longer a form may be than what is left of a request's bytes.
const formOverhead = 1 << 20

// bound refuses what a request does not accept before the bytes arrive, as far as that is known by
// then. It makes one call to the table, and one more for a request with limits.
func (h handler) bound(r *http.Request, p params, u identity.Identity) error {
	q := p.guests
	most, bytes := h.ports.MaxBody, int64(0)
	if q.MaxBytes > 0 {
		if left := max(0, q.MaxBytes-q.Bytes) + formOverhead; most == 0 || left < most {
			most = left
		}
	}
	if p.name != "" && !isForm(r) {
		bytes = max(0, r.ContentLength)
	}
	first := files.Taking{Files: []files.File{{Length: bytes}}}
	if _, err := h.links.Admit(r.Context(), p.owner, files.ByOf(u), first); err != nil {
		return err
	}
	return envelope.LimitBody(r, most)
}

// writeSent tells a guest what has arrived, without links.
func writeSent(w http.ResponseWriter, stored ...*files.Listed) error {
	sent := make([]wire.SentFile, len(stored))
	for i, f := range stored {
		sent[i] = wire.SentFile{Name: f.Name, Length: f.Length}
	}
	return envelope.WriteJSON(w, http.StatusOK, map[string]any{"files": sent})
}
