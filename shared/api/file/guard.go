package file

import (
	"net/url"

	"ferry/shared/api/param"
	"ferry/shared/fault"
	"ferry/shared/keys"
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
func (d *download) guard() (done bool, err error) {
	get := d.isGet && (d.want == wantsBytes || d.want == wantsEntry)
	switch {
	case d.want == wantsPage || d.want == wantsAbout && d.password == "":
		return false, nil
	case d.query.Has("preview"):
		return false, fault.New(
			fault.Forbidden, "a link with a limit or a password has no preview",
		)
	case d.link.Password != "" && (d.claim == "" || d.asker.isRobot() && d.password != ""):
		id := "link#" + keys.HashToken(d.link.Token)
		err := param.CheckPassword(
			d.w,
			d.r,
			d.ports.Passwords(),
			id,
			d.link.Password,
			"curl -L -u :PASSWORD LINK",
		)
		if err != nil {
			return false, err
		}
		d.asker = person
	case d.asker == nameless && d.claim == "" && d.want.isContent():
		return false, fault.New(fault.Forbidden,
			"send a User-Agent: without one you may be a robot, and this link counts its downloads")
	case d.asker == nameless && d.claim != "":
		d.asker = person
	}
	if d.claim != "" && d.want == wantsBytes && get {
		if err := d.mayGive(0); err != nil { // before the claim takes a download for nothing
			return false, err
		}
		return false, d.take()
	}
	inside := d.link.Limit > 0 && (d.want == wantsEntries || d.want == wantsEntry) // with any method
	if d.claim != "" || d.link.HasTaken() || !get && !inside {
		return false, nil
	}
	claim, err := d.links.NewClaim(d.link)
	if err != nil {
		return false, err
	}
	d.redirect(d.plainAddress() + "&claim=" + claim + d.wish())
	return true, nil
}

// take takes a download of the link for the claim.
func (d *download) take() error {
	taken, err := d.links.Take(d.r.Context(), d.link, d.claim, d.taker)
	if err == nil {
		d.link = taken
	}
	return err
}

// wish returns the query parameters that the answer depends on.
func (d *download) wish() (wish string) {
	for _, name := range []string{"download", "entries", "after", "entry"} {
		if d.query.Has(name) {
			wish += "&" + name + "=" + url.QueryEscape(d.query.Get(name))
		}
	}
	return wish
}

// plainAddress returns the link's own address.
func (d *download) plainAddress() string {
	return d.ports.DownloadLink(d.r, users.User{}, d.link.File.Area) + d.link.Token
}
