package upload

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/wire"
)

// params are what a request asks for besides its body.
type params struct {
	owner   string // in whose area
	name    string // what a single file is called; empty leaves it to its part
	lang    string
	digest  []byte // SHA-256 of a single file; nil if not announced
	sending files.Sending
}

func (h uploadHandler) params(r *http.Request, u auth.User) (params, error) {
	q, err := api.Query(r)
	if err != nil {
		return params{}, err
	}
	p := params{owner: u.Name, lang: api.Lang(r, u), name: wire.CleanFileName(q.Get("file"))}
	if q.Get("file") != "" && p.name == "" {
		return params{}, envelope.NewFault(envelope.Invalid, "the query parameter file is not a file name")
	}
	if d := q.Get("d"); d != "" {
		canonical, ok := auth.CanonicalName(d)
		if !ok {
			return params{}, envelope.NewFault(envelope.Invalid, "the destination user does not exist")
		}
		p.owner = canonical
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil {
		return params{}, err
	}
	notify := q.Get("notify")
	if notify != "" && notify != "0" && notify != "1" {
		return params{}, envelope.NewFault(envelope.Invalid, "the query parameter notify is 1 or 0")
	}
	p.sending, err = readRecipients(
		recipientsRequest{Mobile: q.Get("c"), Address: q.Get("m"), Message: q.Get("i"), Notify: notify == "1"},
		recipientsContext{Uploader: u, Lang: p.lang, Base: h.ports.Base(r.Context()), Region: h.ports.PhoneRegion})
	return p, err
}
