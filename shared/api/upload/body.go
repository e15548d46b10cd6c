package upload

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/lazy"
	"ferry/shared/wire"
)

const (
	// readAhead is how much of a form is read at once.
	readAhead = 256 << 10
	// maxParts is the most parts in a form, files or not.
	maxParts = 200
	// maxHeader is the most bytes of a part's header, including what is read along with it.
	maxHeader = 16 << 10
)

// source returns the files of a body one by one, and nil at the end. A file must be read
// before the next call.
type source func() (*files.Part, error)

// open reads only the request's headers. parts is nil for a body that is a file itself.
func open(r *http.Request, p params) (in source, parts *form, err error) {
	switch {
	case p.begun != nil:
		return p.begun.next, p.begun, nil
	case isForm(r):
		if parts, err = newForm(r, ahead(r)); err != nil {
			return nil, nil, err
		}
		parts.digest, parts.guest = p.digest, p.guests != nil
		if p.bundle != "" {
			return once(pack(parts, p.bundle, p.written, r.ContentLength)), parts, nil
		}
		return parts.next, parts, nil
	case p.bundle != "":
		return nil, nil, fault.Parameter("bundle",
			"a bundle is made of the files of a form: curl -F file=@a.txt -F file=@b.txt")
	case strings.HasPrefix(kindOf(r), "multipart/"):
		return nil, nil, fault.New(
			fault.Unsupported, "a form with files must have the Content-Type multipart/form-data",
		)
	case p.name == "":
		return nil, nil, fault.Parameter("file",
			"the query parameter file, the name, is missing: a body other than multipart/form-data needs it")
	}
	whole := files.Part{
		Name:   p.name,
		Type:   mediaType(r.Header.Get("Content-Type")),
		Body:   r.Body,
		Size:   r.ContentLength,
		SHA256: p.digest,
	}
	return once(&whole), nil, nil
}

func isForm(r *http.Request) bool { return kindOf(r) == "multipart/form-data" }

// kindOf returns the type of a body, without parameters.
func kindOf(r *http.Request) string {
	kind, _, _ := wire.Parameters(r.Header.Get("Content-Type"))
	return kind
}

// once is a source of one file.
func once(whole *files.Part) source {
	return func() (part *files.Part, err error) {
		part, whole = whole, nil
		return part, nil
	}
}

// ahead returns a reader that reads a large body in larger pieces: mime/multipart alone
// reads 4 KiB at a time, at half the speed.
func ahead(r *http.Request) io.Reader {
	size := min(uint64(r.ContentLength), readAhead-1) // an unknown length, -1, counts as a large one
	if size <= 8<<10 {
		return r.Body
	}
	return bufio.NewReaderSize(r.Body, int(size)+1)
}

// form is a multipart/form-data body. Its files are the parts with a file name, and the parts named
// file without one. The part named password has the password of the links. Other parts are ignored,
// unless they look like a limit.
type form struct {
	reader   *multipart.Reader
	header   *header
	last     *multipart.Part
	parts    int
	most     int    // parts
	digest   []byte // of the first file
	password string
	bundle   bool      // names are paths
	guest    bool      // no other parts are allowed
	page     []string  // names of fields that count only before the first file
	first    *formPart // that file, once it is found; nil after it is returned
}

// formPart is a part with the parameters of its Content-Disposition.
type formPart struct {
	*multipart.Part
	params map[string]string
}

// newForm returns the form of a request's body with files.
func newForm(r *http.Request, body io.Reader) (*form, error) {
	_, params, _ := wire.Parameters(r.Header.Get("Content-Type"))
	boundary := params["boundary"]
	if boundary == "" {
		return nil, fault.New(
			fault.Invalid, "the Content-Type multipart/form-data has no boundary",
		)
	}
	h := &header{body: io.MultiReader(body, strings.NewReader("\r\n"))} // so that the last line ends
	return &form{reader: multipart.NewReader(h, boundary), header: h, most: maxParts}, nil
}

// header reads a body. It limits the headers of the parts, because package multipart holds up to 10
// MiB of each in memory. It reports a body that ends before the form as cut off, even inside a
// header, where package multipart would take that for the end of the form.
type header struct {
	body io.Reader
	on   bool // a header is being read
	left int  // bytes of it
}

// Read implements io.Reader.
func (h *header) Read(b []byte) (int, error) {
	if h.on && h.left <= 0 {
		return 0, fault.New(
			fault.Invalid, "the body is malformed: the header of a part has more than %d bytes", maxHeader,
		)
	}
	n, err := h.body.Read(b)
	h.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *form) next() (*files.Part, error) {
	for {
		part, err := s.part()
		if part == nil || err != nil {
			return nil, err
		}
		if name, isFile := part.fileName(s.bundle); isFile {
			return s.file(part, name)
		}
		if err := s.field(part); err != nil {
			return nil, err
		}
	}
}

// part returns the next part, or nil at the end.
func (s *form) part() (part *formPart, err error) {
	part, s.first = s.first, nil
	if part != nil {
		return part, nil
	}
	if s.last != nil {
		if _, err := io.Copy(io.Discard, s.last); err != nil {
			return nil, bodyError(err)
		}
	}
	s.header.on, s.header.left = true, maxHeader
	next, err := s.reader.NextRawPart()
	s.header.on, s.last = false, next
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, bodyError(err)
	}
	if s.parts++; s.parts > s.most {
		return nil, fault.New(fault.Invalid, "the form has more than %d parts", s.most)
	}
	_, params, all := wire.Parameters(next.Header.Get("Content-Disposition"))
	if !all { // it may be a limit, or a file that would be left out
		return nil, fault.New(
			fault.Invalid, "the Content-Disposition of a part cannot be read: check the quotes around its file name, and its charset",
		)
	}
	return &formPart{next, params}, envelope.CheckContent(http.Header(next.Header), -1)
}

// chunkFields returns the form fields, or query parameters, with which Dropzone, Fine Uploader,
// Resumable.js, Flow.js and Plupload count the requests in which they send a file. The first field
// counts from 0.
func chunkFields() []string {
	return []string{
		"dzchunkindex", "dztotalchunkcount", "qqtotalparts", "resumableTotalChunks",
		"flowTotalChunks", "chunks",
	}
}

// checkChunk refuses such a field if it says that a file is sent in several requests.
func checkChunk(name, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n > 1 || n > 0 && name == "dzchunkindex" {
		return envelope.Piece(name)
	}
	return nil
}

func (s *form) field(part *formPart) error {
	switch name := part.params["name"]; {
	case slices.Contains(chunkFields(), name):
		count, err := io.ReadAll(io.LimitReader(part, 20)) // far more than a number of chunks has
		if err != nil {
			return bodyError(err)
		}
		return checkChunk(name, string(count))
	case slices.Contains(s.page, name):
		return fault.Parameter(name, "the field %s must come before the file", name)
	case s.guest && name != "":
		return notForGuests(name)
	case name == "password":
		text, err := io.ReadAll(io.LimitReader(part, 4*param.MaxLinkPassword+1))
		s.password = string(text)
		return bodyError(err)
	case slices.Contains(wire.OptionNames(wire.Limit), name):
		return fault.Parameter(
			name,
			"the parameter %s belongs in the address: /upload?%s=...",
			name,
			name,
		)
	default:
		return param.Misspelt(url.Values{name: nil}, wire.OptionNames(wire.Limit)...)
	}
}

func (s *form) file(part *formPart, name string) (*files.Part, error) {
	digest, err := reprDigest(part.Header.Get("Repr-Digest"))
	if err != nil {
		return nil, err
	}
	if s.digest != nil {
		if digest != nil && !bytes.Equal(digest, s.digest) {
			return nil, fault.New(
				fault.Invalid, "the Repr-Digest of the request differs from that of its part",
			)
		}
		digest, s.digest = s.digest, nil
	}
	return &files.Part{
		Name:   name,
		Type:   mediaType(part.Header.Get("Content-Type")),
		Body:   part,
		Size:   -1,
		SHA256: digest,
	}, nil
}

// fileName returns the name of a part that is a file. Browsers and curl escape a quote as %22 or \",
// and do not escape UTF-8 (RFC 7578).
func (p *formPart) fileName(inBundle bool) (name string, isFile bool) {
	raw, has := p.params["filename"]
	if has && raw == "" || !has && p.params["name"] != "file" {
		return "", false // an empty name means that no file was chosen
	}
	if inBundle && has {
		return bundledName(raw), true
	}
	return cmp.Or(wire.CleanFileName(escapes.Replace(raw)), "file"), true
}

// escapes are those in a form's names (WHATWG HTML, "multipart/form-data encoding algorithm").
// Clients percent-encode nothing else.
var escapes = strings.NewReplacer("%22", `"`, "%0D", "", "%0A", "")

// mediaType returns the type that a client states, as far as it can be read. Even types that
// browsers run are kept, as files are sent only as attachments.
func mediaType(stated string) string {
	kind := wire.MediaType(stated)
	if strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		return "" // curl --data-binary sends it for any file
	}
	return kind
}

// bodyError turns the errors of a broken form into faults of the client.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || isMultipart(err) {
		return envelope.BrokenBody(err)
	}
	return err
}

// isMultipart recognizes the errors of mime/multipart, which have no type.
func isMultipart(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "multipart:") ||
			strings.HasPrefix(err.Error(), "malformed MIME header") {
			return true
		}
	}
	return false
}

// reprDigest returns the SHA-256 in a Repr-Digest header (RFC 9530), or nil.
func reprDigest(header string) (sum []byte, err error) {
	if header == "" {
		return nil, nil
	}
	for member := range strings.SplitSeq(header, ",") {
		found := digestForm().FindStringSubmatch(strings.TrimSpace(member))
		if found != nil && found[1] != "sha-256" {
			continue
		}
		if found != nil {
			sum, err = base64.StdEncoding.DecodeString(found[2])
		}
		if found == nil || err != nil || len(sum) != sha256.Size {
			return nil, fault.New(
				fault.Invalid, "Repr-Digest must read sha-256=:BASE64: as in RFC 9530",
			)
		}
	}
	return sum, nil
}

// digestForm is that of a digest by any algorithm.
var digestForm = lazy.Regexp(`^([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):(;.*)?$`)
