package wire

import "time"

// NewToken asks for an API token.
type NewToken struct {
	Name    string `json:"name"`
	Scope   string `json:"scope"`             // upload, download, all or login
	Expires string `json:"expires,omitempty"` // like 12h or 7d, or an RFC 3339 date; empty means never
}

// Token is an API token, or the login of a device.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Scope   string    `json:"scope"`
	Token   string    `json:"token,omitempty"` // only in the answer that makes it
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`    // the last use, to a day
	Expires time.Time `json:"expires,omitzero"` // as asked for
	Ends    time.Time `json:"ends"`             // if it is not used until then
	This    bool      `json:"this,omitempty"`   // it is the one that the request used
}

// NewPassword changes the password of the caller.
type NewPassword struct {
	Old string `json:"old"`
	New string `json:"new"`
}
