package files

import (
	"ferry/shared/auth"
	"ferry/shared/table"
)

// By is who stores a file. The zero By is nobody, and never the owner.
type By struct {
	User            string `json:"uploader,omitempty"` // a canonical name
	UserIncarnation int64  `json:"byWhich,omitempty"`
}

// ByOf returns what a caller stores files by.
func ByOf(caller auth.Identity) By { return By{caller.Name, caller.Incarnation} }

// is reports whether this is a user, and none of the earlier ones with the name.
func (b By) is(user string, incarnation int64) bool { return b == By{user, incarnation} }

// Uploader returns the name of who stored the file, or "" if that is its owner.
func (f File) Uploader() string {
	if f.By.User == f.Owner {
		return ""
	}
	return f.By.User
}

// Stored returns the form in which a record and its links are written. For most files the owner
// stored them, so this is left out, and Completed puts it back.
func (f File) Stored() File {
	if f.By.is(f.Owner, f.Incarnation) {
		f.By = By{}
	}
	return f
}

// put returns the operation that writes the record.
func (f File) put() table.Op { return table.Put(f.key(), f.Stored()) }

// Completed returns what was read in its full form.
func (f File) Completed() File {
	if f.By == (By{}) {
		f.By = By{f.Owner, f.Incarnation}
	}
	return f
}
