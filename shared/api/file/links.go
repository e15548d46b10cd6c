package file

import (
	"net/http"
	"slices"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/wire"
)

// Sharing is /files/{id}/links and the paths below it, and PATCH /files/{id}: what the owner of a
// file can do with its links, its name and its expiry.
func Sharing() api.Endpoint { return api.Named("links", newSharing) }

// newSharing returns the handler. It needs the port Table and the link key.
func newSharing(p *api.Ports) http.Handler {
	s := newServer(p)
	return p.ByRoute(map[string]api.Handler{
		"PATCH /files/{id}":                api.WithJSON(false, s.change),
		"POST /files/{id}/links":           api.WithJSON(false, s.share),
		"PATCH /files/{id}/links/{n}":      api.WithJSON(false, s.changeLink),
		"DELETE /files/{id}/links/{n}":     s.endLink,
		"POST /files/{id}/links/own/renew": s.renewLink,
	})
}

// own returns the file in the caller's user area that the path names. It costs one call.
func (s server) own(r *http.Request, u identity.Identity) (f files.File, err error) {
	id, err := param.FileID(r)
	if err != nil {
		return f, err
	}
	return s.files.Get(r.Context(), u.User, blob.Files, id)
}

// change costs four calls after authentication, plus those of writeRecord.
func (s server) change(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.ChangeFile,
) error {
	f, err := s.own(r, u)
	if err != nil {
		return err
	}
	var e files.Edit
	if in.Name != nil {
		name := wire.CleanFileName(*in.Name)
		e.Name = &name
		if name == "" {
			return fault.Parameter("name", "name is not a file name")
		}
	}
	if in.Expires != nil {
		wish, err := param.Expiry(*in.Expires, s.ports.Now())
		e.Expiry = &wish
		if err != nil {
			return err
		}
	}
	if f, err = s.files.Change(r.Context(), u.User, f.ID, e); err != nil {
		return err
	}
	return s.writeRecord(w, r, u, f)
}

// share costs four calls after authentication, and one more if messages are counted.
func (s server) share(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewLinks,
) error {
	if err := checkRecipients(in); err != nil {
		return err
	}
	f, err := s.own(r, u)
	if err != nil {
		return err
	}
	d := wire.Delivery{
		SMS:     in.SMS,
		Mail:    in.Mail,
		Message: in.Message,
		Lang:    in.Lang,
		Limits:  in.Limits,
	}
	sending, err := param.Sending(s.ports.Service, s.ports.Base(r.Context()), r, u.User, d)
	if err != nil {
		return err
	}
	order := links.Order{
		To:       sending.Recipients,
		Options:  sending.Options,
		Instead:  in.Instead,
		Uploader: u.Name == f.By.User,
	}
	if order.Until, err = param.Until(in.Expires, s.ports.Now(), f); err != nil {
		return err
	}
	f, made, err := s.links.Make(r.Context(), s.files, f, files.ByOf(u), order)
	if err != nil {
		return err
	}
	if len(order.To) > 0 {
		s.ports.Notify()
	}
	out := make([]wire.Link, len(made))
	for i, l := range made {
		out[i] = s.shown(r, u.User, f, l)
	}
	return envelope.WriteJSON(w, http.StatusCreated, map[string]any{"links": out})
}

// checkRecipients refuses an empty recipient, which would turn a link for one person into a link
// for anybody, and a message without a recipient.
func checkRecipients(in wire.NewLinks) error {
	switch {
	case slices.Contains(in.SMS, ""):
		return fault.Parameter("c", "the parameter c has an empty number")
	case slices.Contains(in.Mail, ""):
		return fault.Parameter("m", "the parameter m has an empty address")
	case in.Instead != "" &&
		(len(in.SMS)+len(in.Mail) != 1 || in.Message != "" || in.Limits != wire.Limits{}):
		return fault.Parameter(
			"instead", "the parameter instead needs exactly one recipient and no other parameters: the new link keeps the old one's message and limits",
		)
	case in.Message != "" && len(in.SMS)+len(in.Mail) == 0:
		return fault.Parameter("i", "the parameter i needs a recipient: c or m is missing")
	}
	return nil
}

// changeLink costs three calls after authentication.
func (s server) changeLink(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.ChangeLink,
) error {
	f, err := s.own(r, u)
	if err != nil {
		return err
	}
	c, err := param.Change(r.Context(), s.ports.Service, in, f)
	if err != nil {
		return err
	}
	return s.edit(w, r, u, f, c)
}

// endLink costs three calls after authentication.
func (s server) endLink(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	f, err := s.own(r, u)
	if err != nil {
		return err
	}
	return s.edit(w, r, u, f, links.Change{End: true})
}

func (s server) edit(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	f files.File,
	c links.Change,
) error {
	l, err := s.links.Edit(r.Context(), s.files, f, r.PathValue("n"), u.Name == f.By.User, c)
	if err != nil {
		return err
	}
	return envelope.WriteJSON(w, http.StatusOK, s.shown(r, u.User, f, l))
}

// renewLink costs three calls after authentication, plus those of writeRecord.
func (s server) renewLink(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	f, err := s.own(r, u)
	if err != nil {
		return err
	}
	if f, err = s.links.RenewOwn(r.Context(), s.files, f); err != nil {
		return err
	}
	return s.writeRecord(w, r, u, f)
}
