package upload

import (
	"net/http"
	"net/url"

	"ferry/shared/endpoint"
	"ferry/shared/fault"
	"ferry/shared/filename"
	"ferry/shared/files"
	"ferry/shared/recipients"
	"ferry/shared/users"
)

// params are what a request asks for besides its body.
type params struct {
	owner   string // in whose area
	name    string // what a single file is called; empty leaves it to its part
	lang    string
	digest  []byte // SHA-256 of a single file; nil if not announced
	sending files.Sending
}

func (h handler) params(r *http.Request, u users.User) (params, error) {
	q, err := endpoint.Query(r)
	if err != nil {
		return params{}, err
	}
	p := params{owner: u.Name, lang: endpoint.Lang(r, u), name: filename.Clean(q.Get("file"))}
	if q.Get("file") != "" && p.name == "" {
		return params{}, fault.New(fault.Invalid, "the query parameter file is not a file name")
	}
	if d := q.Get("d"); d != "" {
		canonical, ok := users.Canonical(d)
		if !ok {
			return params{}, fault.New(fault.Invalid, "the destination user does not exist")
		}
		p.owner = canonical
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil {
		return params{}, err
	}
	p.sending, err = h.sending(r, q, u, p.lang)
	return p, err
}

func (h handler) sending(r *http.Request, q url.Values, u users.User, lang string) (s files.Sending, err error) {
	wanted, base := q.Get("notify"), h.ports.Base(r.Context())
	if wanted != "" && wanted != "0" && wanted != "1" {
		return s, fault.New(fault.Invalid, "the query parameter notify is 1 or 0")
	}
	if s.Receipt, err = recipients.Receipt(wanted == "1", u, lang, base); err != nil {
		return s, err
	}
	s.Recipients, err = recipients.Parse(q.Get("c"), q.Get("m"), q.Get("i"), h.ports.PhoneRegion)
	for i := range s.Recipients {
		n := &s.Recipients[i]
		n.Lang, n.Base, n.Sender, n.ReplyTo = lang, base, u.Name, u.Email
	}
	return s, err
}
