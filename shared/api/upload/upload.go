// Package upload has the endpoint POST /upload (specification section 4.3), which takes
// files as parts of multipart/form-data or one as the whole body, and the upload
// sessions of /uploads. Start reading with upload.go; session.go has the sessions.
package upload

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Upload is POST /upload, and PUT to it and to the paths that curl -T makes from it.
func Upload() api.Endpoint { return api.Named("upload", newUpload) }

// newUpload returns the handler. It needs the ports Table and Blobs and the link key.
//
// After authentication an upload of one file costs four calls: its id, its object, the
// record with link and notices in one transaction, and the newest page for the answer;
// with d, three. An Idempotency-Key costs one more, and so do recipients.
func newUpload(p *api.Ports) http.Handler {
	h := newHandler(p)
	outlet := p.Outlet()
	outlet.WriteError = h.pageError(0, "send")
	return p.AuthenticatedTo(outlet, h.upload)
}

// handler handles uploads, upload sessions and requests.
type handler struct {
	ports     *api.Ports
	files     *files.Service
	links     *links.Service
	passwords *identity.Passwords // of requests
}

func newHandler(p *api.Ports) handler {
	return handler{p, p.Files(), p.Links(), p.Passwords()}
}

// upload checks as much as it can before it reads the first byte of the body.
func (h handler) upload(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	page, err := h.take(w, r, u, nil)
	switch {
	case err != nil:
		return err
	case h.isPage(r):
		return toSent(w, u, page)
	}
	return h.answer(w, r, u.User, page)
}

// take stores what a user sends, or what a guest sends through the link of a request.
func (h handler) take(
	w http.ResponseWriter, r *http.Request, u identity.Identity, guests *links.Request,
) (page files.Page, err error) {
	if err := envelope.LimitBody(r, h.ports.MaxBody); err != nil {
		return page, err
	}
	var begun *form
	if h.isPage(r) {
		if r, begun, err = h.pageForm(r, u); err != nil {
			return page, err
		}
	}
	p, err := h.params(r, u)
	if err != nil {
		return page, err
	}
	p.guests, p.begun = guests, begun
	if begun != nil {
		p.list = 0
	}
	envelope.LongBody(r)
	page, err = h.store(w, r, p, u)
	if err == nil && len(p.sending.Recipients) > 0 {
		h.ports.Notify()
	}
	return page, err
}

// wantsLinks reports whether a client asks for bare links instead of the envelope.
func wantsLinks(r *http.Request) bool { return param.Asked(r) == param.AsText }

// lists reports whether the answer to an upload lists the area that the files go to. The caller
// must not see another user's list, and a token that may only upload sees no list.
func lists(r *http.Request, u identity.Identity, owner string) bool {
	return owner == u.Name && u.Scope.Allows(identity.ScopeDownload) && !wantsLinks(r)
}

// answer sends the envelope with a page of the caller's files or, if the client asks for text, the
// links of its files, one per line.
func (h handler) answer(
	w http.ResponseWriter,
	r *http.Request,
	u users.User,
	page files.Page,
) error {
	if !wantsLinks(r) {
		return api.WriteList(w, r, h.ports, u, blob.Files, page, files.PageSize)
	}
	link := h.ports.DownloadLink(r, u, blob.Files)
	text := ""
	for _, f := range page.Files {
		text += link + f.Token + "\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return envelope.WriteText(w, http.StatusOK, []byte(text))
}

// slot returns the name whose slots a user takes. Guests have no name, so those at one address share
// their slots.
func slot(user string, r *http.Request) string {
	return cmp.Or(user, "source:"+identity.Source(r))
}

// store holds a slot while it reads the body, which takes memory.
func (h handler) store(
	w http.ResponseWriter, r *http.Request, p params, u identity.Identity,
) (page files.Page, err error) {
	places := 1
	if p.bundle != "" {
		places = bundlePlaces
	}
	leave, err := h.ports.Slots.Take(slot(u.Name, r), "", places)
	if err != nil {
		return page, err
	}
	defer leave()
	incoming, parts, err := open(r, p)
	if err != nil {
		return page, err
	}
	// An idempotency key does not cover the body, because a form's boundary differs each time. A
	// Repeat compares the files instead.
	what := []string{r.URL.Query().Encode(), kindOf(r), r.Header.Get("Repr-Digest")}
	if p.sending.Password != "" {
		what = append(what, "protected") // by a header; a Repeat is told about a form's password
	}
	hold, err := h.hold(r, u, r.ContentLength, what...)
	if err != nil {
		return page, err
	}
	done := false
	defer func() { // even after a panic
		if !done {
			hold.Release(r.Context())
		}
	}()
	up, err := h.receiver(r, p, u, hold)
	if err != nil {
		return page, err
	}
	if again, ok := up.(*files.Repeat); ok && p.unnamed { // the clock has moved on: keep the first attempt's name
		p.name = again.Name()
	}
	err = receive(r.Context(), up, incoming, p)
	if err == nil && parts != nil && parts.password != "" { // it is not in the header
		var o files.Options
		if o, err = param.Options(r.Context(), h.ports.Service, wire.Limits{Password: parts.password}); err == nil {
			up.Protect(o.Password)
		}
	}
	if err != nil {
		up.Abort(r.Context())
		return page, err
	}
	page, err = up.Commit(r.Context(), p.list)
	done = err == nil
	if done && p.guests == nil {
		nameStored(w, up.Stored()...)
	}
	return page, err
}

// nameStored tells a user what the request has stored, in the order of its parts. The list in the answer does
// not say which of its files are new.
func nameStored(w http.ResponseWriter, stored ...files.File) {
	ids := make([]string, len(stored))
	for i, f := range stored {
		ids[i] = strconv.FormatInt(f.ID, 10)
	}
	w.Header().Set(wire.FilesHeader, strings.Join(ids, ", "))
}

// receiver is a files.Upload or a files.Repeat.
type receiver interface {
	Add(context.Context, files.Part) error
	Stored() []files.File
	Protect(password string)
	Commit(ctx context.Context, limit int) (files.Page, error)
	Abort(context.Context)
}

// receiver begins the upload or, if the hold has a result, its repeat.
func (h handler) receiver(
	r *http.Request,
	p params,
	u identity.Identity,
	hold *files.Hold,
) (receiver, error) {
	if _, ok := hold.Result(); ok {
		return hold.Repeat(u, p.owner)
	}
	if p.guests != nil {
		if err := h.bound(r, p, u); err != nil {
			return nil, err
		}
	}
	up, err := h.files.Begin(r.Context(), p.owner, files.ByOf(u), r.ContentLength, p.sending)
	up.Hold = hold
	return up, err
}

// receive adds the files of the body.
func receive(ctx context.Context, up receiver, in source, p params) error {
	for {
		part, err := in()
		if err != nil {
			return err
		}
		if part == nil {
			break
		}
		if err := up.Add(ctx, *part); err != nil {
			return bodyError(err)
		}
	}
	switch stored := up.Stored(); {
	case len(stored) == 0:
		return fault.New(fault.Invalid, "the form has no file: send it as a part named file")
	case len(stored) > 1 && p.digest != nil:
		return fault.New(
			fault.Invalid, "Repr-Digest is for a single file; give each part its own",
		)
	case len(stored) == 1 && p.name != "":
		stored[0].Name = p.name
	}
	return nil
}

// hold takes the request's idempotency key, if it has one, or finds the result of an earlier
// request with it. The method, the path and what identify the request; bytes is the length of its
// body.
func (h handler) hold(
	r *http.Request,
	u identity.Identity,
	bytes int64,
	what ...string,
) (*files.Hold, error) {
	key, err := files.ReadKey(r.Header)
	if err != nil || key == "" {
		return nil, err
	}
	if !u.Scope.Allows(identity.ScopeAll) { // it must not see answers to other logins
		key = u.Token + " " + key
	}
	return h.files.Hold(r.Context(), files.KeyRequest{
		By:          files.ByOf(u),
		Key:         key,
		HoldFor:     files.HoldTime(bytes),
		Fingerprint: files.Fingerprint(append([]string{r.Method, r.URL.Path}, what...)...),
	})
}

// params is what a request says outside its body.
type params struct {
	owner   string         // the user whose area the files go to
	guests  *links.Request // through whose link a guest sends them; nil for a user
	name    string         // the name of a single file; if empty, its part has the name
	unnamed bool           // the name was made from the clock
	bundle  string         // the name of the bundle that the form becomes; empty if it does not
	written time.Time      // the time of the files in a bundle
	digest  []byte         // the SHA-256 of a single file; nil if not stated
	sending files.Sending
	begun   *form // of a page, with its first fields read; nil for other clients
	list    int   // how many of the caller's newest files the answer lists; 0 lists those of the request
}

func (h handler) params(r *http.Request, u identity.Identity) (p params, err error) {
	q, err := param.Query(r)
	where := "the parameter file"
	if err == nil && u.Guest == nil {
		where, err = "the parameter file, or the end of the path,", checkNames(q)
	}
	if err != nil {
		return p, err
	}
	name := cmp.Or(q.Get("file"), r.PathValue("name"))
	p.name = wire.CleanFileName(name)
	if name != "" && p.name == "" {
		return p, fault.Parameter("file", "%s is not a file name", where)
	}
	if p.bundle, err = bundleName(r, q, p.name); err != nil {
		return p, err
	}
	p.written = h.ports.Now()
	if r.Header.Get(files.KeyHeader) != "" { // a repeated request must make the same bytes
		p.written = time.Unix(0, 0)
	}
	d, err := param.Delivery(q)
	if err != nil {
		return p, err
	}
	if p.owner, err = owner(d.To, u); err != nil {
		return p, err
	}
	if lists(r, u, p.owner) {
		p.list = files.PageSize
	}
	if u.Guest != nil && p.name == "" && !isForm(r) {
		p.name, p.unnamed = h.ports.Now().UTC().Format("2006-01-02 15.04.05"), true // curl -T gives no name
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil || u.Guest != nil {
		return p, err
	}
	d.Password = param.HeaderPassword(r)
	p.sending, err = param.Sending(h.ports.Service, h.ports.Base(r.Context()), r, u.User, d)
	return p, err
}

// bundleName returns the name of the bundle that the form of a request becomes, if any. name is that
// of a single file.
func bundleName(r *http.Request, q url.Values, name string) (string, error) {
	bundle := wire.CleanFileName(q.Get("bundle"))
	switch {
	case !q.Has("bundle"):
		return "", nil
	case bundle == "":
		return "", fault.Parameter("bundle", "the query parameter bundle is not a file name")
	case name != "" || r.Header.Get("Repr-Digest") != "":
		return "", fault.Parameter("bundle",
			"the parameter bundle cannot be used with the parameter file or with Repr-Digest")
	}
	return bundle, nil
}

// checkNames returns a fault for a query parameter that looks misspelt, because a misspelt limit
// would not apply. Callers may send other unknown parameters.
func checkNames(q url.Values) error {
	for _, name := range chunkFields() {
		if err := checkChunk(name, cmp.Or(q.Get(name), "0")); err != nil {
			return err
		}
	}
	if q.Has("password") {
		return fault.Parameter(
			"password", "a password must not be in an address: send it in the header %s or as a form field", param.PasswordHeader,
		)
	}
	if err := param.Misspelt(q, append(wire.OptionNames(0), "file")...); err != nil {
		return err
	}
	for _, name := range wire.OptionNames(wire.Limit) {
		if q.Has(name) && q.Get(name) == "" {
			return fault.Parameter(name, "the query parameter %s is empty", name)
		}
	}
	return nil
}

// owner returns the user whose area the files go to: the maker of a guest's request, the user named
// in d, or the caller.
func owner(d string, u identity.Identity) (string, error) {
	canonical, ok := users.CanonicalName(d)
	switch {
	case u.Guest != nil:
		return u.Guest.Owner.Name, nil
	case d == "":
		return u.Name, nil
	case !ok:
		return "", fault.Parameter("d", "the parameter d is not a user name")
	}
	return canonical, nil
}
