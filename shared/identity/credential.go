package identity

import (
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"ferry/shared/fault"
)

// Kind is what a credential is.
type Kind int

// The kinds.
const (
	None   Kind = iota
	Other       // in a header, but of no kind that Ferry knows
	Basic       // a name and a password in a header
	Form        // a name and a password in a form or a body
	Bearer      // a bearer or a token, in a header or in a cookie
)

// Credential is what a request shows to prove who calls. Nothing in it is checked yet.
type Credential struct {
	Kind           Kind
	Name, Password string // of the kinds Basic and Form
	Bearer         string
	Source         string // the address that failed logins are counted by
}

// Read returns the credential in a request's Authorization header.
func Read(r *http.Request) Credential {
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	c := Credential{Source: Source(r)}
	if name, password, ok := r.BasicAuth(); ok {
		c.Kind = Basic
		c.Name = name
		c.Password = HeaderText(password)
	} else if strings.EqualFold(scheme, "Bearer") {
		c.Kind, c.Bearer = Bearer, strings.TrimSpace(value)
	} else if header != "" {
		c.Kind = Other
	}
	return c
}

// FormCredential returns the credential of a name and a password that a request sends in a form or a
// body.
func FormCredential(r *http.Request, name, password string) Credential {
	return Credential{Kind: Form, Name: name, Password: password, Source: Source(r)}
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
