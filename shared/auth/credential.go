package auth

import (
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"ferry/shared/fault"
)

// Credential is what a request shows to prove who calls. Nothing in it is checked yet.
type Credential struct {
	Kind           string // basic, password (in a form) or bearer, as in the log; otherwise unknown or empty
	Name, Password string // of the kinds basic and password
	Bearer         string
	Source         string // the address that failed logins are counted by
}

// Read returns the credential in a request's Authorization header.
func Read(r *http.Request) Credential {
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	c := Credential{Source: Source(r)}
	if name, password, ok := r.BasicAuth(); ok {
		c.Kind = "basic"
		c.Name = name
		c.Password = HeaderText(password)
	} else if strings.EqualFold(scheme, "Bearer") {
		c.Kind, c.Bearer = "bearer", strings.TrimSpace(value)
	} else if header != "" {
		c.Kind = "unknown"
	}
	return c
}

// HeaderText decodes a password from a header: it is UTF-8 or, from some clients, Latin-1. So a
// password reads the same, whichever client sends it.
func HeaderText(password string) string {
	if utf8.ValidString(password) {
		return password
	}
	latin := make([]rune, len(password))
	for i, b := range []byte(password) {
		latin[i] = rune(b)
	}
	return string(latin)
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

// Identity is the caller, once the credential has been verified.
type Identity struct {
	User  // the zero User for a guest
	Scope Scope
	Token string // the id of the API token that the caller used, else empty
	Guest *Guest // nil for a user
}

// Guest is somebody without an account who uses the link of a request.
type Guest struct {
	Owner   User   // who made the request; only name and incarnation are known
	Request string // its id
	ID      string // a hash of a secret that the guest got with the first answer
	Name    string // the name that the guest gave; may be empty
	Source  string // as in a Credential
}
