package auth

import "ferry/shared/fault"

// Scope is what a credential may do, and what a route needs.
type Scope string

// The scopes of tokens. A password, and a bearer made with one, have ScopeLogin.
const (
	ScopeUpload   Scope = "upload"   // send files
	ScopeDownload Scope = "download" // read the account, lists and files
	ScopeAll      Scope = "all"      // everything except what needs ScopeLogin
	ScopeLogin    Scope = "login"    // everything: also make tokens and change the password
	// ScopeGuest belongs to no token: whoever has the link of a request may send files there.
	ScopeGuest Scope = "guest"
)

// Scopes returns the scopes that a token can have.
func Scopes() []Scope { return []Scope{ScopeUpload, ScopeDownload, ScopeAll, ScopeLogin} }

// Allows reports whether a credential of this scope may do what needs the scope need.
func (s Scope) Allows(need Scope) bool {
	return s == ScopeGuest && need == ScopeUpload || s == ScopeLogin || s == ScopeAll && need != ScopeLogin || s == need && s != ""
}

// Allow returns a Forbidden fault unless the caller may do what needs a scope.
func (id Identity) Allow(need Scope) error {
	switch {
	case need != "" && id.Scope.Allows(need):
		return nil
	case need == ScopeLogin:
		return fault.New(fault.Forbidden, "this needs the password, or the login of a device: an API token cannot do it")
	}
	return fault.New(fault.Forbidden, "the scope of this token, %s, does not allow this: it needs %s", id.Scope, need)
}
