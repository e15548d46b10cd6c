package upload

import (
	"net/http"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// maxTitle is the longest title of a request, and the longest name of a guest, in characters.
// maxRequestMessage is the longest message of a request.
const maxTitle, maxRequestMessage = 100, 1000

// Requests is /requests and the paths below it: links through which people without an account send
// files to the area of the user who made the link.
func Requests() api.Endpoint { return api.Named("requests", newRequests) }

// requests handles what makers and guests do with requests.
type requests struct{ handler }

// newRequests returns the handler. It needs the ports Table and Blobs and the link key.
func newRequests(p *api.Ports) http.Handler {
	h := requests{newHandler(p)}
	mux, outlet := http.NewServeMux(), p.Outlet()
	outlet.Links, outlet.WriteError = true, h.pageError(1, "r")
	mux.Handle(wire.Prefix+"/requests/in", outlet.Handler(h.in))
	mux.Handle("/", p.ByRoute(map[string]api.Handler{
		"POST /requests":        api.WithJSON(true, h.add),
		"GET /requests":         h.list,
		"PATCH /requests/{id}":  api.WithJSON(true, h.change),
		"DELETE /requests/{id}": h.end,
	}))
	return mux
}

// add makes a request. It costs two calls after authentication.
func (h requests) add(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewRequest,
) error {
	edit, err := h.edit(r, u.User, in)
	if err != nil {
		return err
	}
	var made links.Request
	edit(&made)
	if made, err = h.links.NewRequest(r.Context(), u.User, made); err != nil {
		return err
	}
	return envelope.WriteJSON(w, http.StatusCreated, h.shown(r, u.User, made))
}

// edit returns a function that changes a request as asked. It hashes the password.
func (h requests) edit(
	r *http.Request,
	u users.User,
	in wire.NewRequest,
) (func(*links.Request), error) {
	if err := checkRequest(in, u); err != nil {
		return nil, err
	}
	expires, err := param.When("expires", param.Value(in.Expires), h.ports.Now())
	if err != nil {
		return nil, err
	}
	options, err := param.Options(
		r.Context(),
		h.ports.Service,
		wire.Limits{Password: param.Value(in.Password)},
	)
	var notify files.Contact
	if param.Value(in.Notify) {
		notify = files.Contact{
			To:   u.Email,
			Lang: param.Lang(r, u),
			Base: h.ports.Base(r.Context()),
		}
	}
	return func(q *links.Request) {
		set(&q.Title, in.Title)
		set(&q.Message, in.Message)
		set(&q.MaxBytes, in.Bytes)
		set(&q.MaxFiles, in.Files)
		if in.Expires != nil {
			q.Expires = expires
		}
		if in.Password != nil {
			q.Password = options.Password
		}
		if in.Notify != nil {
			q.Notify = notify
		}
	}, err
}

func checkRequest(in wire.NewRequest, u users.User) error {
	if err := checkLine("title", param.Value(in.Title)); err != nil {
		return err
	}
	err := param.CheckText("message", param.Value(in.Message), maxRequestMessage)
	if err != nil {
		return err
	}
	switch {
	case param.Value(in.Bytes) < 0:
		return fault.Parameter("bytes", "bytes must not be negative")
	case param.Value(in.Files) < 0:
		return fault.Parameter("files", "files must not be negative")
	case param.Value(in.Notify) && u.Email == "":
		return fault.Parameter(
			"notify", "notify sends you a mail, but you have no registered address",
		)
	}
	return nil
}

// checkLine checks a title, or the name of a guest.
func checkLine(parameter, s string) error {
	if strings.ContainsAny(s, "\n\r\t") {
		return fault.Parameter(parameter, "the parameter %s must be one line", parameter)
	}
	return param.CheckText(parameter, s, maxTitle)
}

// set copies a field to to, unless the field is missing.
func set[T any](to, field *T) {
	if field != nil {
		*to = *field
	}
}

// shown returns a request as its maker sees it.
func (h requests) shown(r *http.Request, u users.User, q links.Request) wire.Request {
	link := h.ports.Base(r.Context()) + "/requests/in?lang=" + param.Lang(
		r,
		u,
	) + "&k=" + h.links.RequestToken(q)
	return wire.Request{
		ID:        q.ID,
		LinkURL:   link,
		Title:     q.Title,
		Message:   q.Message,
		Created:   param.Time(q.Created),
		Expires:   param.Time(q.Expires),
		Bytes:     q.MaxBytes,
		Files:     q.MaxFiles,
		Notify:    q.Notify.To != "",
		Protected: q.Password != "",
		Arrived:   wire.Arrivals{Files: q.Files, Bytes: q.Bytes},
	}
}

// list costs one call after authentication.
func (h requests) list(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	all, err := h.links.Requests(r.Context(), u.User)
	if err != nil {
		return err
	}
	out := make([]wire.Request, len(all))
	for i, q := range all {
		out[i] = h.shown(r, u.User, q)
	}
	return envelope.WriteJSON(w, http.StatusOK, map[string]any{"requests": out})
}

// change costs two calls after authentication.
func (h requests) change(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewRequest,
) error {
	edit, err := h.edit(r, u.User, in)
	if err != nil {
		return err
	}
	q, err := h.links.EditRequest(r.Context(), u.User, r.PathValue("id"), edit)
	if err != nil {
		return err
	}
	return envelope.WriteJSON(w, http.StatusOK, h.shown(r, u.User, q))
}

// end costs two calls after authentication.
func (h requests) end(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	return envelope.WriteNothing(w, h.links.EndRequest(r.Context(), u.User, r.PathValue("id")))
}
