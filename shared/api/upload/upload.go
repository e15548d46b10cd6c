// Package upload has the endpoint POST /upload (specification section 4.3), which takes
// files as parts of multipart/form-data or one as the whole body, and the upload
// sessions of /uploads. It may import api, api/file and the domains (auth, files,
// notify), but no backend. Start reading with upload.go; session.go has the sessions.
package upload

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/contact"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/wire"
)

// Upload is POST /upload, and PUT to it and to the paths that curl -T makes of it.
func Upload() api.Endpoint { return api.Named("upload", newUpload) }

// newUpload returns the handler. It needs the ports Table and Blobs and the link key.
//
// After authentication an upload of one file costs four calls: its id, its object, the
// record with link and notices in one transaction, and the newest page for the answer;
// with d, three. An Idempotency-Key costs one more, and so do recipients.
func newUpload(p *api.Ports) http.Handler {
	return p.Authenticated(handler{ports: p, files: file.Service(p)}.upload)
}

// handler handles uploads and upload sessions.
type handler struct {
	ports *api.Ports
	files *files.Service
}

// upload checks as much as it can before it reads the first byte of the body.
func (h handler) upload(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
	if err := envelope.LimitBody(r, h.ports.MaxBody); err != nil {
		return err
	}
	p, err := h.params(r, u)
	if err != nil {
		return err
	}
	envelope.LongBody(r)
	page, err := h.store(r, p, u)
	if err != nil {
		return err
	}
	if len(p.sending.Recipients) > 0 {
		h.ports.Notify()
	}
	return h.answer(w, r, u.User, page)
}

// wantsLinks reports whether a client asks for bare links instead of the envelope.
func wantsLinks(r *http.Request) bool { return api.Prefers(r, "text/plain") != "" }

// lists reports whether the answer to an upload into an area lists it: the caller must not see
// another user's list, and a token that may only upload sees none.
func lists(r *http.Request, u auth.Identity, owner string) bool {
	return owner == u.Name && u.Scope.Allows(auth.ScopeDownload) && !wantsLinks(r)
}

// answer sends the envelope with a page of the caller's files or, if the client asks for
// text, the links of its files, one a line.
func (h handler) answer(w http.ResponseWriter, r *http.Request, u auth.User, page files.Page) error {
	if !wantsLinks(r) {
		return file.WriteList(w, r, h.ports, u, blob.Files, page, files.PageSize)
	}
	link := auth.DownloadLink(h.ports.Base(r.Context()), api.Lang(r, u), blob.Files)
	var text strings.Builder
	for _, f := range page.Files {
		text.WriteString(link + f.Token + "\n")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return envelope.WriteText(w, http.StatusOK, []byte(text.String()))
}

// store holds a slot while it reads the body, which takes memory.
func (h handler) store(r *http.Request, p params, u auth.Identity) (files.Page, error) {
	leave, err := h.ports.Slots.Take(u.Name, "")
	if err != nil {
		return files.Page{}, err
	}
	defer leave()
	incoming, err := open(r, p)
	if err != nil {
		return files.Page{}, err
	}
	// The body is not part of what a key is for: a form's boundary differs each time. A Repeat
	// compares the files.
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	claim, err := h.claim(r, u, r.ContentLength, r.URL.Query().Encode(), kind, r.Header.Get("Repr-Digest"))
	if err != nil {
		return files.Page{}, err
	}
	done := false
	defer func() { // after a panic too
		if !done {
			claim.Release(r.Context())
		}
	}()
	up, err := h.receiver(r, p, u, claim)
	if err != nil {
		return files.Page{}, err
	}
	if err := receive(r.Context(), up, incoming, p); err != nil {
		up.Abort(r.Context())
		return files.Page{}, err
	}
	page, err := up.Commit(r.Context(), p.list)
	done = err == nil
	return page, err
}

// receiver is a files.Upload or a files.Repeat.
type receiver interface {
	Add(context.Context, files.Part) error
	Stored() []files.File
	Commit(ctx context.Context, limit int) (files.Page, error)
	Abort(context.Context)
}

// receiver begins the upload or, if the claim has a result, its repeat.
func (h handler) receiver(r *http.Request, p params, u auth.Identity, claim *files.Claim) (receiver, error) {
	if _, ok := claim.Result(); ok {
		return claim.Repeat(u, p.owner)
	}
	up, err := h.files.Begin(r.Context(), p.owner, files.ByOf(u), r.ContentLength, p.sending)
	up.Claim = claim
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
		return fault.New(fault.Invalid, "Repr-Digest is for a single file; give each part its own")
	case len(stored) == 1 && p.name != "":
		stored[0].Name = p.name
	}
	return nil
}

// claim takes the request's idempotency key, if it has one, or finds the result of an earlier
// request with it. The method, the path and what identify the request; bytes are those of its body.
func (h handler) claim(r *http.Request, u auth.Identity, bytes int64, what ...string) (*files.Claim, error) {
	key, err := files.ReadKey(r.Header)
	if err != nil || key == "" {
		return nil, err
	}
	if !u.Scope.Allows(auth.ScopeAll) { // it sees no answer to other logins
		key = u.Token + " " + key
	}
	return h.files.Claim(r.Context(), files.KeyRequest{
		By: files.ByOf(u), Key: key, Lease: files.Lease(bytes),
		Fingerprint: files.Fingerprint(append([]string{r.Method, r.URL.Path}, what...)...),
	})
}

// params is what a request says outside its body.
type params struct {
	owner   string // the user whose area the files go to
	name    string // the name of a single file; if empty, its part has the name
	digest  []byte // the SHA-256 of a single file; nil if not stated
	sending files.Sending
	list    int // how many of the caller's newest files the answer lists; 0 lists those of the request
}

func (h handler) params(r *http.Request, u auth.Identity) (params, error) {
	q, err := api.Query(r)
	if err != nil {
		return params{}, err
	}
	name := cmp.Or(q.Get("file"), r.PathValue("name"))
	p := params{name: wire.CleanFileName(name)}
	if name != "" && p.name == "" {
		return params{}, fault.Parameter("file", "the parameter file, or the end of the path, is not a file name")
	}
	if p.owner, err = owner(q.Get("d"), u.User); err != nil {
		return params{}, err
	}
	if lists(r, u, p.owner) {
		p.list = files.PageSize
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil {
		return params{}, err
	}
	notify := q.Get("notify")
	if notify != "" && notify != "0" && notify != "1" {
		return params{}, fault.Parameter("notify", "the query parameter notify must be 1 or 0")
	}
	to := recipients{q["c"], q["m"], q.Get("i"), notify == "1"}
	p.sending, err = h.sending(r, u.User, to, q.Get("lang"))
	return p, err
}

// owner returns the user whose area the files go to: the one named in d, else the caller.
func owner(d string, u auth.User) (string, error) {
	if d == "" {
		return u.Name, nil
	}
	canonical, ok := auth.CanonicalName(d)
	if !ok {
		return "", fault.Parameter("d", "the parameter d is not a user name")
	}
	return canonical, nil
}

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// recipients says who gets an upload's link (c, m and i of section 4.3 of the
// specification; c and m may be repeated, and empty is nobody), and whether the uploader
// gets a mail at the first download.
type recipients struct {
	mobiles, addresses []string
	message            string
	notify             bool
}

// sending returns a message for each recipient, and the receipt. Bad recipients are an Invalid
// fault, and so is an unknown language.
func (h handler) sending(r *http.Request, u auth.User, to recipients, lang string) (s files.Sending, err error) {
	if s.Recipients, err = to.messages(h.ports.Settings); err != nil {
		return s, err
	}
	if _, ok := api.Language(lang); !ok && lang != "" {
		return s, fault.Parameter("lang", "the parameter lang must be one of %s", strings.Join(api.Languages(), ", "))
	}
	lang, base := api.LangOf(lang, r, u), h.ports.Base(r.Context())
	for i := range s.Recipients {
		n := &s.Recipients[i]
		n.Text, n.Lang, n.Base, n.Sender, n.ReplyTo = to.message, lang, base, u.Name, u.Email
	}
	if !to.notify {
		return s, nil
	}
	if u.Email == "" {
		return s, fault.Parameter("notify",
			"the parameter notify sends you a mail, but you have no registered address")
	}
	s.Tell = files.Contact{To: u.Email, Lang: lang, Base: base}
	return s, nil
}

// messages returns one message for each number and address. Addresses that differ only in case
// are the same.
func (to recipients) messages(set api.Settings) (all []files.Message, err error) {
	if err := checkMessage(to.message); err != nil {
		return nil, err
	}
	for _, mobile := range to.mobiles {
		if strings.HasPrefix(mobile, " ") { // an unescaped + in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		if mobile == "" {
			continue
		}
		number, err := contact.ParseMobile(mobile, set.PhoneRegion)
		if err != nil {
			return nil, fault.Parameter("c", "the parameter c is %v", err)
		}
		if err := checkCountry(number, set); err != nil {
			return nil, err
		}
		all = append(all, files.Message{Channel: files.SMS, To: number})
	}
	for _, address := range to.addresses {
		if address == "" {
			continue
		}
		if err := contact.CheckAddress(address); err != nil {
			return nil, fault.Parameter("m", "the parameter m is %v", err)
		}
		all = append(all, files.Message{Channel: files.Mail, To: address})
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(m files.Message) bool {
		lower := strings.ToLower(m.To) // as the limits count
		again := seen[lower]
		seen[lower] = true
		return again
	})
	if len(all) > files.MaxRecipients {
		return nil, fault.Parameter("c, m",
			"the parameters c and m allow at most %d recipients together", files.MaxRecipients)
	}
	return all, nil
}

// CheckCountries returns an error if a country in the settings does not exist: such a list would
// refuse the very numbers that it is meant to allow.
func CheckCountries(set api.Settings) error {
	for _, country := range append([]string{set.PhoneRegion}, set.SMSCountries...) {
		if country != "" && !contact.KnownRegion(country) {
			return fmt.Errorf("FERRY_PHONE_REGION or FERRY_SMS_COUNTRIES: there is no country %s (Britain is GB)", country)
		}
	}
	return nil
}

// checkCountry refuses a number that gets no text messages from here.
func checkCountry(number string, set api.Settings) error {
	country, all := contact.CountryOf(number), strings.Join(set.SMSCountries, ", ")
	switch {
	case set.NoSMS:
		return fault.Parameter("c",
			"the parameter c is not supported: this service sends no text messages, as FERRY_SMS_URL is not set")
	case all != "" && !slices.Contains(set.SMSCountries, country):
		return fault.Parameter("c",
			"the parameter c is a number in %s, but text messages go only to %s", country, all)
	}
	return nil
}

func checkMessage(s string) error {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxMessage {
		return fault.Parameter("i", "the parameter i must be text of at most %d characters", maxMessage)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return fault.Parameter("i", "the parameter i has control characters")
	}
	return nil
}
