package identity

import (
	"ferry/shared/fault"
)

// Scope is what a credential may do, and what a route needs.
type Scope string

// The scopes of tokens. A password, and a bearer made with one, have ScopeAccount.
const (
	ScopeUpload   Scope = "upload"   // send files
	ScopeDownload Scope = "download" // read the account, lists and files
	ScopeAll      Scope = "all"      // everything except what needs ScopeAccount
	ScopeAccount  Scope = "login"    // everything: also make tokens and change the password
	// ScopeGuest belongs to no token: whoever has the link of a request may send files there.
	ScopeGuest Scope = "guest"
)

// Scopes returns the scopes that a token can have.
func Scopes() []Scope { return []Scope{ScopeUpload, ScopeDownload, ScopeAll, ScopeAccount} }

// Allows reports whether a credential of this scope may do what needs the scope need.
func (s Scope) Allows(need Scope) bool {
	return s == ScopeGuest && need == ScopeUpload ||
		s == ScopeAccount ||
		s == ScopeAll && need != ScopeAccount ||
		s == need && s != ""
}

// IsLogin reports whether a token of this scope is the login of a device or a browser. Other tokens
// are for programs.
func (s Scope) IsLogin() bool { return s == ScopeAccount }

// Allow returns a Forbidden fault unless the caller may do what needs a scope.
func (id Identity) Allow(need Scope) error {
	switch {
	case need != "" && id.Scope.Allows(need):
		return nil
	case need == ScopeAccount:
		return fault.New(
			fault.Forbidden, "this needs the password, or the login of a device: an API token cannot do it",
		)
	}
	return fault.New(
		fault.Forbidden,
		"the scope of this token, %s, does not allow this: it needs %s",
		id.Scope,
		need,
	)
}
