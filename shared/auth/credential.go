package auth

import (
	"net/http"
	"net/netip"
	"strings"

	"ferry/shared/fault"
)

// Credential is what a request shows to prove who calls. Nothing in it is checked yet.
type Credential struct {
	Kind           string // basic, password (in a form) or bearer, as the log names it
	Name, Password string // of the kinds basic and password
	Bearer         string
	Source         string // the address that failed logins are counted by
}

// Read returns the credential in a request's Authorization header. Without one the fault is
// Unauthorized.
func Read(r *http.Request) (Credential, error) {
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Bearer") {
		return Credential{Kind: "bearer", Bearer: strings.TrimSpace(value), Source: Source(r)}, nil
	}
	name, password, ok := r.BasicAuth()
	switch {
	case ok:
		return Credential{Kind: "basic", Name: name, Password: password, Source: Source(r)}, nil
	case header == "":
		return Credential{}, fault.New(fault.Unauthorized, "an Authorization header is missing")
	}
	return Credential{}, errScheme
}

var errScheme = fault.New(fault.Unauthorized, "the Authorization header is not valid for this address")

// ReadBasic is Read for addresses that take HTTP Basic only.
func ReadBasic(r *http.Request) (Credential, error) {
	c, err := Read(r)
	if err == nil && c.Kind != "basic" {
		err = errScheme
	}
	return c, err
}

// Source returns the address that failed logins are counted by: an IPv4 address, or
// an IPv6 /64 network, which is what one subscriber gets.
func Source(r *http.Request) string {
	addr := fault.Address(r)
	if !addr.IsValid() {
		return "unknown"
	}
	if addr.Is6() {
		addr = netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	return addr.String()
}

// Identity is who calls, once their credential has proved right.
type Identity struct {
	User
	Kind string // of the credential
}
