package upload

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/table"
)

// defaultLimit is how many sessions a list has unless the caller says otherwise.
const defaultLimit = 100

// Sessions is /uploads and what is below it: sessions by which a file of any size
// arrives in parts, sent directly to the store where it takes them.
func Sessions() api.Endpoint { return api.Named("uploads", newSessions) }

// newSessions returns the handler. It needs the ports Table, Blobs and Parts and the
// link key.
func newSessions(p *api.Ports) http.Handler {
	h := handler{ports: p, keys: files.NewKeys(p.Ports), files: file.Service(p)}
	mux := http.NewServeMux()
	for route, f := range map[string]func(http.ResponseWriter, *http.Request, auth.User) error{
		"POST /uploads":               h.begin,
		"GET /uploads":                h.list,
		"GET /uploads/{id}":           h.show,
		"DELETE /uploads/{id}":        h.end,
		"POST /uploads/{id}/parts":    h.parts,
		"POST /uploads/{id}/complete": h.complete,
	} {
		method, path, _ := strings.Cut(route, " ")
		mux.Handle(method+" "+api.Prefix+path, p.Authenticated(f))
	}
	return mux
}

// session is one as an answer shows it.
type session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Length   int64     `json:"length"` // bytes
	Type     string    `json:"type,omitempty"`
	D        string    `json:"d,omitempty"` // the owner, if not the caller
	PartSize int64     `json:"partSize"`
	Parts    int       `json:"parts"`
	State    string    `json:"state"`
	Created  string    `json:"created"` // RFC 3339, UTC
	Expires  string    `json:"expires"`
	Arrived  []arrived `json:"arrived,omitzero"`
}

type arrived struct {
	Number    int    `json:"number"`
	Size      int64  `json:"size"`
	CRC64NVME string `json:"crc64nvme,omitempty"`
}

func show(it files.Session) session {
	s := session{
		ID: it.ID, Name: it.Name, Length: it.Length, Type: it.Type, PartSize: it.PartSize, Parts: it.Layout().Count(),
		State: "open", Created: stamp(time.UnixMilli(it.Created)), Expires: stamp(time.Unix(it.Expires, 0)),
	}
	if it.Owner != it.Uploader {
		s.D = it.Owner
	}
	if it.Done {
		s.State = "done"
	}
	return s
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// list shows the caller's open sessions, newest first.
func (h handler) list(w http.ResponseWriter, r *http.Request, u auth.User) error {
	q, err := api.Query(r)
	if err != nil {
		return err
	}
	limit, err := api.Number(q, "limit", 1, table.MaxPage, defaultLimit)
	if err != nil {
		return err
	}
	after := q.Get("after")
	if len(after) > 128 {
		return envelope.NewFault(envelope.Invalid, "the query parameter after is not from a Link of this list")
	}
	page, next, err := h.files.Sessions(r.Context(), u, after, int(limit))
	if err != nil {
		return err
	}
	all := make([]session, len(page))
	for i, it := range page {
		all[i] = show(it)
	}
	if next != "" {
		w.Header().Set("Link", fmt.Sprintf(`<%s/uploads?limit=%d&after=%s>; rel="next"`, h.ports.Base(r.Context()), limit, next))
	}
	return envelope.WriteJSON(w, http.StatusOK, struct {
		Uploads []session `json:"uploads"`
	}{all})
}

// show says which parts have arrived: all that it takes to go on, from another
// machine too. One call to the table and one for each 1,000 parts.
func (h handler) show(w http.ResponseWriter, r *http.Request, u auth.User) error {
	it, err := h.files.Session(r.Context(), u, r.PathValue("id"))
	if err != nil {
		return err
	}
	parts, err := h.files.Arrived(r.Context(), it)
	if err != nil {
		return err
	}
	s := show(it)
	s.Arrived = make([]arrived, len(parts))
	for i, p := range parts {
		s.Arrived[i] = arrived{Number: p.Number, Size: p.Size, CRC64NVME: text(p)}
	}
	return envelope.WriteJSON(w, http.StatusOK, s)
}

// end removes a session that is not complete.
func (h handler) end(w http.ResponseWriter, r *http.Request, u auth.User) error {
	it, err := h.files.Session(r.Context(), u, r.PathValue("id"))
	if err == nil {
		err = h.files.EndSession(r.Context(), it)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// complete answers as POST /upload does.
func (h handler) complete(w http.ResponseWriter, r *http.Request, u auth.User) error {
	var in struct {
		CRC64NVME string `json:"crc64nvme"`
	}
	if err := decode(r, &in, true); err != nil {
		return err
	}
	sum, err := parseSum(in.CRC64NVME)
	if err != nil {
		return err
	}
	it, err := h.files.Session(r.Context(), u, r.PathValue("id"))
	if err != nil {
		return err
	}
	stored, err := h.files.Complete(r.Context(), it, sum)
	if err != nil {
		return err
	}
	if len(it.Notices) > 0 {
		h.ports.Notify()
	}
	page := files.Page{Files: []files.Listed{stored}}
	if it.Owner == u.Name { // another's list is none of the caller's business
		if page, err = h.files.List(r.Context(), u, blob.Files, 0, files.PageSize); err != nil {
			return err
		}
		page = page.With(stored)
	}
	return file.WriteList(r.Context(), w, h.ports,
		file.ListPage{User: u.Name, Area: blob.Files, Lang: api.Lang(r, u), Page: page, Limit: files.PageSize})
}
