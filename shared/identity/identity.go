// Package identity finds out who calls. A request shows a credential, and the provider for that kind
// of credential turns it into an Identity, whose scope says what the caller may do. Start reading
// with Identity and Provider; password.go and token.go are the providers. A guest shows more than a
// credential and is told a secret, so api/upload makes a guest's Identity.
package identity

import (
	"context"

	"ferry/shared/fault"
	"ferry/shared/users"
)

// Identity is the caller, once the credential has been verified.
type Identity struct {
	users.User // the zero User for a guest
	Scope      Scope
	Token      string // the id of the API token that the caller used, else empty
	Guest      *Guest // nil for a user
}

// Guest is somebody without an account who uses the link of a request.
type Guest struct {
	Owner   users.User // who made the request; only name and incarnation are known
	Request string     // its id
	ID      string     // a hash of a secret that the guest got with the first answer
	Name    string     // the name that the guest gave; may be empty
	Source  string     // as in a Credential
}

// Provider verifies credentials.
type Provider interface {
	// Identify returns the active user that a credential belongs to, and tells fault.CallerOf how
	// the caller logs in.
	Identify(ctx context.Context, c Credential) (Identity, error)
}

// Authenticator has the provider for each kind of credential.
type Authenticator map[Kind]Provider

// Check returns the active user that a credential belongs to.
func (a Authenticator) Check(ctx context.Context, c Credential) (Identity, error) {
	if p, ok := a[c.Kind]; ok {
		return p.Identify(ctx, c)
	}
	return Identity{}, c.unexpected()
}

// unexpected says why a credential is of the wrong kind.
func (c Credential) unexpected() error {
	if c.Kind == None {
		return fault.New(fault.Unauthorized, "an Authorization header is missing")
	}
	return fault.New(
		fault.Unauthorized, "the Authorization header is not valid for this address",
	)
}

// errDenied answers every bad credential, so that nobody can tell a wrong password
// from an unknown user.
var errDenied = fault.New(
	fault.Unauthorized, "the user does not exist or the credential is not valid",
)
