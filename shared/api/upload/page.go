package upload

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// isPage reports whether a request is the form of one of the service's own pages, sent by a browser
// without scripts. The answers to such a form redirect back to the page.
func (h handler) isPage(r *http.Request) bool {
	cookie, ok := h.ports.Cookie(r.Context())
	return ok &&
		r.Method == http.MethodPost &&
		isForm(r) &&
		identity.Read(r).Kind == identity.None &&
		cookie.IsOwn(r) &&
		param.Asked(r) == param.AsPage
}

// maxFields is the most bytes that a page's fields may have together, far more than they need.
const maxFields = 16 << 10

// pageForm reads the fields of a page's form up to its first file. It adds them to the query, which
// a form cannot set. It leaves out empty fields, and splits lists of recipients.
func (h handler) pageForm(r *http.Request, u identity.Identity) (*http.Request, *form, error) {
	f, err := newForm(r, r.Body) // its buffer is small: no slot is taken yet
	if err != nil {
		return r, nil, err
	}
	names := wire.OptionNames(wire.Page)
	if u.Guest != nil {
		names = wire.OptionNames(wire.GuestPage)
	}
	f.page, f.guest = names, u.Guest != nil
	q, err := param.Query(r)
	for left := int64(maxFields); err == nil; {
		var part *formPart
		if part, err = f.part(); part == nil || err != nil {
			break
		}
		if _, isFile := part.fileName(false); isFile {
			f.first = part
			break
		}
		if name := part.params["name"]; slices.Contains(names, name) {
			err = setField(q, name, part, &left)
		} else {
			err = f.field(part)
		}
	}
	if err == nil && u.Guest != nil {
		err = called(u, q.Get("by"))
	}
	r = r.Clone(r.Context())
	r.URL.RawQuery = q.Encode()
	return r, f, err
}

// setField reads a field of a page's form into the query.
func setField(q url.Values, name string, part io.Reader, left *int64) error {
	content, err := io.ReadAll(io.LimitReader(part, *left+1))
	*left -= int64(len(content))
	if *left < 0 {
		return fault.Parameter(name, "the fields of the form are too long")
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
	switch {
	case err != nil:
		return bodyError(err)
	case text == "":
	case name == "c" || name == "m": // several, in one field
		for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;\n", r) }) {
			q.Add(name, strings.TrimSpace(one))
		}
	default:
		q.Set(name, text)
	}
	return nil
}

// toSent redirects a browser to the page that shows what was sent. The address has the ids of the
// files and their owner, if that is another user.
func toSent(w http.ResponseWriter, u identity.Identity, page files.Page) error {
	q := url.Values{}
	for _, f := range page.Files {
		q.Add("sent", strconv.FormatInt(f.ID, 10))
		if f.Owner != u.Name {
			q.Set("d", f.Owner)
		}
	}
	return api.ToPage(w, 0, "send", q)
}

// pageError returns a function that sends errors. After a page's own form, it redirects back to the
// page, which says what is wrong. The address contains nothing that was typed.
func (h handler) pageError(
	depth int,
	page string,
) func(http.ResponseWriter, *http.Request, int) error {
	return func(w http.ResponseWriter, r *http.Request, status int) error {
		if !h.isPage(r) {
			return envelope.WriteError(w, h.ports.Now(), status)
		}
		w.Header().Del("WWW-Authenticate")
		q := pageQuery(r)
		q.Set("failed", strconv.Itoa(status))
		if parameter := w.Header().Get(envelope.ParameterHeader); parameter != "" {
			q.Set("parameter", parameter)
		}
		return api.ToPage(w, depth, page, q)
	}
}

// pageQuery returns the query of a request's page: the token and the language of the link.
func pageQuery(r *http.Request) url.Values {
	q := url.Values{}
	for _, name := range []string{"k", "lang"} {
		if value := r.URL.Query().Get(name); value != "" {
			q.Set(name, value)
		}
	}
	return q
}
