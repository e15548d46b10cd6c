package file

import (
	"net/http"
	"net/url"

	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/users"
)

// guard protects a link with a limit or a password. It withholds what such a link gives only for a
// claim, only for the password, or never. If guard has answered the request, done is true.
//
// A caller who gives the right password counts as a person, and so does a nameless program that has
// a claim.
//
// Making a claim costs no call, and checking a password costs one. Taking a download costs one call
// of 4 write units, or 6 if many takers make the link's item longer than 1 KB.
func (s server) guard(
	w http.ResponseWriter, r *http.Request, link *links.Link, wanted want, claim string, who *asker,
) (done bool, err error) {
	get := r.Method == http.MethodGet && (wanted == wantsBytes || wanted == wantsEntry)
	switch {
	case wanted == wantsPage || wanted == wantsAbout && param.Password(r) == "":
		return false, nil
	case r.URL.Query().Has("preview"):
		return false, fault.New(fault.Forbidden, "a link with a limit or a password has no preview")
	case link.Password != "" && (claim == "" || who.isRobot() && param.Password(r) != ""):
		id := "link#" + keys.HashToken(link.Token)
		if err := param.CheckPassword(w, r, s.passwords, id, link.Password, "curl -L -u :PASSWORD LINK"); err != nil {
			return false, err
		}
		*who = person
	case *who == nameless && claim == "" && wanted.isContent():
		return false, fault.New(fault.Forbidden, "send a User-Agent: without one you may be a robot, and this link counts its downloads")
	case *who == nameless && claim != "":
		*who = person
	}
	if claim != "" && wanted == wantsBytes && get {
		if err := s.links.MayGive(*link, 0); err != nil { // before the claim takes a download for nothing
			return false, err
		}
		*link, err = s.links.Take(r.Context(), *link, claim, taker(r))
		return false, err
	}
	inside := link.Limit > 0 && (wanted == wantsEntries || wanted == wantsEntry) // with any method
	if claim != "" || link.HasTaken() || !get && !inside {
		return false, nil
	}
	if claim, err = s.links.NewClaim(*link); err != nil {
		return false, err
	}
	w.Header().Set("Location", s.plainAddress(r, *link)+"&claim="+claim+wish(r))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusFound)
	return true, nil
}

// taker identifies the client of a request by address and program, so that later requests from
// there can be recognized. It is empty if these do not say enough, as behind a proxy that does not
// pass on its client's address.
func taker(r *http.Request) string {
	addr := fault.Address(r)
	if !addr.IsValid() || addr.IsLoopback() && envelope.ViaProxy(r) || MadeByRobot(r) {
		return ""
	}
	return addr.String() + " " + r.Header.Get("User-Agent")
}

// wish returns the query parameters that the answer depends on.
func wish(r *http.Request) (wish string) {
	q := r.URL.Query()
	for _, name := range []string{"download", "entries", "after", "entry"} {
		if q.Has(name) {
			wish += "&" + name + "=" + url.QueryEscape(q.Get(name))
		}
	}
	return wish
}

// plainAddress returns the link's own address.
func (s server) plainAddress(r *http.Request, link links.Link) string {
	return s.ports.DownloadLink(r, users.User{}, link.File.Area) + link.Token
}
