package upload

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/bundle"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// defaultLimit is how many sessions a list has if the caller gives no limit.
const defaultLimit = 100

// Sessions is /uploads and the paths below it: sessions take a file of any size in
// parts, which go directly to the store if it supports that.
func Sessions() api.Endpoint { return api.Named("uploads", newSessions) }

// newSessions returns the handler. It needs the ports Table, Blobs and Parts, and the
// link key.
func newSessions(p *api.Ports) http.Handler {
	h, guarded := newHandler(p), *p
	guarded.Guests = h.identify
	return guarded.ByRoute(map[string]api.Handler{
		"POST /uploads":               api.WithJSON(false, h.begin),
		"GET /uploads":                h.list,
		"GET /uploads/{id}":           h.show,
		"DELETE /uploads/{id}":        h.end,
		"POST /uploads/{id}/parts":    api.WithJSON(false, h.parts),
		"POST /uploads/{id}/complete": api.WithJSON(true, h.complete),
	}, "limit", "after")
}

// session returns a session as files.Service.Session does. A token whose scope is upload may only
// use the sessions that it began.
func (h handler) session(
	r *http.Request,
	u identity.Identity,
	id string,
	own bool,
) (files.Session, error) {
	sess, err := h.files.Session(r.Context(), files.ByOf(u), id, own)
	if err == nil && !mayUse(u, sess) {
		return sess, fault.New(
			fault.Forbidden, "another login began this upload: the scope of this token does not allow using it",
		)
	}
	return sess, err
}

func mayUse(u identity.Identity, sess files.Session) bool {
	return u.Scope.Allows(identity.ScopeAll) || u.Token == sess.Token
}

// shown returns what u, the uploader or the owner, sees of a session.
func (h handler) shown(sess files.Session, u identity.Identity) wire.Session {
	s := wire.Session{
		ID:       sess.ID,
		Name:     sess.Name,
		Type:     sess.Type,
		PartSize: sess.PartSize,
		Request:  sess.By.Request,
		By:       sess.By.Called,
		State:    "open",
		Created:  param.Time(sess.Created / 1000),
		Expires:  param.Time(sess.Expires),
	}
	if sess.Length >= 0 {
		s.Length, s.Parts = &sess.Length, h.files.Layout(sess).Count()
	}
	if sess.Owner != u.Name {
		s.D = sess.Owner
	}
	if sess.By.User != u.Name {
		s.From = sess.By.User
	}
	if sess.Done {
		s.State = "done"
	}
	return s
}

// list shows the caller's open sessions, and those of others that send files to the caller's area,
// newest first.
func (h handler) list(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	limit, err := param.Number(r, "limit", 1, table.MaxPage, defaultLimit)
	if err != nil {
		return err
	}
	after := r.URL.Query().Get("after")
	if utf8.RuneCountInString(after) > 128 {
		return fault.Parameter(
			"after", "the query parameter after must come from the Link header of this list",
		)
	}
	if u.Guest != nil { // a request has fewer; the next page's address would name another guest's session
		limit, after = table.MaxPage, ""
	}
	page, next, err := h.files.Sessions(r.Context(), files.ByOf(u), after, int(limit))
	if err != nil {
		return err
	}
	all := []wire.Session{}
	for _, sess := range page {
		if mayUse(u, sess) {
			all = append(all, h.shown(sess, u))
		}
	}
	if next != "" && u.Guest == nil {
		w.Header().Set(
			"Link",
			fmt.Sprintf(`<%s/uploads?limit=%d&after=%s>; rel="next"`,
				h.ports.Base(r.Context()), limit, next),
		)
	}
	return envelope.WriteJSON(w, http.StatusOK, map[string]any{"uploads": all})
}

// show says which parts have arrived. That is enough to resume the upload, even on
// another machine. It costs one call to the table and one for each 1,000 parts.
func (h handler) show(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	sess, err := h.session(r, u, r.PathValue("id"), false)
	if err != nil {
		return err
	}
	parts, err := h.files.ArrivedParts(r.Context(), sess)
	if err != nil {
		return err
	}
	s := h.shown(sess, u)
	s.Arrived = make([]wire.Arrived, len(parts))
	for i, p := range parts {
		s.Arrived[i] = wire.Arrived{Number: p.Number, Size: p.Size}
		if p.HasSum {
			s.Arrived[i].CRC64NVME = wire.CRC64Text(p.Sum)
		}
	}
	return envelope.WriteJSON(w, http.StatusOK, s)
}

// end removes a session that is not complete, for its uploader or for the user whose area
// it is for.
func (h handler) end(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	sess, err := h.session(r, u, r.PathValue("id"), false)
	if err == nil {
		err = h.files.EndSession(r.Context(), sess)
	}
	return envelope.WriteNothing(w, err)
}

// complete makes the file, and answers like POST /upload.
func (h handler) complete(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.Complete,
) error {
	sum, err := parseSum(in.CRC64NVME)
	if err != nil {
		return err
	}
	sess, err := h.session(r, u, r.PathValue("id"), true)
	if err != nil {
		return err
	}
	if err := h.files.State(&sess, in.Length); err != nil {
		return err
	}
	stored, err := h.files.Complete(r.Context(), sess, sum)
	if err != nil {
		return err
	}
	if len(sess.Recipients) > 0 {
		h.ports.Notify()
	}
	if u.Guest != nil {
		return writeSent(w, stored)
	}
	page := files.Page{Files: []*files.Listed{stored}}
	if lists(r, u, sess.Owner) {
		if page, err = h.files.List(r.Context(), u.User, blob.Files, 0, files.PageSize); err != nil {
			return err
		}
		page = page.With(stored)
	}
	nameStored(w, stored.File)
	return h.answer(w, r, u.User, page)
}

// begin opens a session. After authentication it costs three calls, and one more each for an
// idempotency key, for recipients, and for an owner with a quota.
func (h handler) begin(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewSession,
) error {
	if err := guestMay(u, in); err != nil {
		return err
	}
	plan, err := h.plan(r, u, in)
	if err != nil {
		return err
	}
	if in.Password != "" {
		in.Password = "set" // a fast hash of it must not be stored
	}
	body, _ := json.Marshal(in) // texts and numbers always marshal
	hold, err := h.hold(r, u, 0, string(body))
	if err != nil {
		return err
	}
	var sess files.Session
	if id, ok := hold.Result(); ok {
		if sess, err = h.session(r, u, id, true); err == nil && sess.Done {
			_, err = h.files.Complete(r.Context(), sess, nil) // its file may have been deleted since
		}
	} else if sess, err = h.files.BeginSession(r.Context(), files.ByOf(u), plan, hold); err != nil {
		hold.Release(r.Context())
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", h.ports.Base(r.Context())+"/uploads/"+sess.ID)
	return envelope.WriteJSON(w, http.StatusCreated, h.shown(sess, u))
}

// plan checks a request as POST /upload does.
func (h handler) plan(
	r *http.Request,
	u identity.Identity,
	in wire.NewSession,
) (files.Plan, error) {
	p := files.Plan{
		Name:     wire.CleanFileName(in.Name),
		Type:     mediaType(in.Type),
		PartSize: in.PartSize,
		Bundle:   in.Bundle,
		Files:    in.Files,
		Length:   -1,
		Streamed: in.Length == nil,
	}
	if !p.Streamed {
		p.Length = *in.Length
	}
	if !u.Scope.Allows(identity.ScopeAll) {
		p.Token = u.Token
	}
	most := h.ports.Parts.Limits()
	switch {
	case p.Name == "":
		return p, fault.Parameter("name", "name is missing, or is not a file name")
	case strings.ContainsFunc(in.Type, notVisible):
		return p, fault.Parameter(
			"type", "type must be a media type such as video/mp4, in visible ASCII characters",
		)
	case !p.Streamed && p.Length < 0, p.Length > most.MaxLength():
		return p, fault.Parameter("length", "length must be from 0 to %d bytes",
			most.MaxLength())
	case in.Files < 0, in.Files > bundle.MaxEntries, in.Files > 0 && !in.Bundle:
		return p, fault.Parameter(
			"files",
			"files must be the number of files in a bundle, at most %d",
			bundle.MaxEntries,
		)
	case in.PartSize < 0 || in.PartSize > most.MaxPart:
		return p, fault.Parameter("partSize", "the parameter partSize must be at most %d bytes",
			most.MaxPart)
	}
	if p.Bundle && p.Type == "" {
		p.Type = files.BundleType
	}
	if in.SHA256 != "" {
		sum, err := hex.DecodeString(in.SHA256)
		if err != nil || len(sum) != 32 {
			return p, fault.Parameter("sha256", "sha256 must be 64 hexadecimal digits")
		}
		p.SHA256 = sum
	}
	var err error
	if p.Owner, err = owner(in.To, u); err != nil || u.Guest != nil {
		return p, err
	}
	p.Sending, err = param.Sending(
		h.ports.Service,
		h.ports.Base(r.Context()),
		r,
		u.User,
		in.Delivery,
	)
	if err == nil && in.Message != "" && len(p.Sending.Recipients) == 0 { // POST /upload must allow it
		err = fault.Parameter("i", "the parameter i needs a recipient: c or m is missing")
	}
	return p, err
}

// notVisible reports whether a character may not be in a header.
func notVisible(r rune) bool { return r < ' ' || r > '~' }

// parseSum reads a CRC64NVME; an empty text gives nil.
func parseSum(s string) (*uint64, error) {
	if s == "" {
		return nil, nil
	}
	sum, err := wire.ParseCRC64(s)
	if err != nil {
		return nil, &fault.Fault{
			Kind:   fault.Invalid,
			Detail: "crc64nvme must be base64 of 8 bytes, the highest first",
			Cause:  err,
		}
	}
	return &sum, nil
}
