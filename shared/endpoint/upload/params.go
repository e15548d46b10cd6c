package upload

import (
	"net/http"

	"ferry/shared/endpoint"
	"ferry/shared/fault"
	"ferry/shared/filename"
	"ferry/shared/notices"
	"ferry/shared/recipients"
	"ferry/shared/users"
)

// params are what a request asks for besides its body.
type params struct {
	owner      string // in whose area
	name       string // what a single file is called; empty leaves it to its part
	lang       string
	digest     []byte // SHA-256 of a single file; nil if not announced
	recipients []notices.Notice
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
	p.recipients, err = recipients.Parse(q.Get("c"), q.Get("m"), q.Get("i"), h.ports.PhoneRegion)
	for i := range p.recipients {
		n := &p.recipients[i]
		n.Lang, n.Base, n.Sender, n.ReplyTo = p.lang, h.ports.Base(r.Context()), u.Name, u.Email
	}
	return p, err
}
