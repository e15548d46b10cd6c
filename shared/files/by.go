package files

import (
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// By says who stores a file: a user, or a guest of a request. The zero By is nobody, and never
// the owner.
type By struct {
	User            string `json:"uploader,omitempty"` // a canonical name
	UserIncarnation int64  `json:"byWhich,omitempty"`  // for a guest, that of the request's owner

	Request string `json:"request,omitempty"` // the request's id, for a guest
	Guest   string `json:"guest,omitempty"`   // identity.Guest.ID
	Called  string `json:"called,omitempty"`  // the name that the guest gave
	Source  string `json:"source,omitempty"`  // a hash of the guest's address
}

// ByOf returns the By of a caller.
func ByOf(caller identity.Identity) By {
	if g := caller.Guest; g != nil {
		return By{
			UserIncarnation: g.Owner.Incarnation,
			Request:         g.Request,
			Guest:           g.ID,
			Called:          g.Name,
			Source:          keys.HashToken(g.Request + " " + g.Source)[:16],
		}
	}
	return By{User: caller.Name, UserIncarnation: caller.Incarnation}
}

// is reports whether b is this user, and not an earlier one of the same name.
func (b By) is(user string, incarnation int64) bool {
	return b == By{User: user, UserIncarnation: incarnation}
}

// same reports whether both are the same user or guest, ignoring address and display name.
func (b By) same(other By) bool {
	b.Called = ""
	b.Source = ""
	other.Called = ""
	other.Source = ""
	return b == other
}

// Uploader returns the name of the user who stored the file, or "" if that is its owner or a
// guest.
func (f File) Uploader() string {
	if f.By.User == f.Owner {
		return ""
	}
	return f.By.User
}

// Stored returns the form in which a record and its links are written. By is left out if the
// owner stored the file, as with most files; Completed puts it back. A guest's Source is not
// kept.
func (f File) Stored() File {
	f.By.Source = ""
	if f.By.is(f.Owner, f.Incarnation) {
		f.By = By{}
	}
	return f
}

// put returns the operation that writes the record.
func (f File) put() table.Op { return table.Put(f.key(), f.Stored()) }

// Completed returns a record with the By that Stored left out.
func (f File) Completed() File {
	if f.By == (By{}) {
		f.By = By{User: f.Owner, UserIncarnation: f.Incarnation}
	}
	return f
}
