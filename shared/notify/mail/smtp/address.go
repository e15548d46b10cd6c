package smtp

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"ferry/shared/contact"
)

// security is how the connection is protected.
type security int

const (
	startTLS security = iota
	implicitTLS
	noTLS
)

// server is a parsed address.
type server struct {
	host           string
	port           int
	user, password string
	security       security
}

// parse reads an address. Its errors quote no part of it: if a password was not escaped, any
// part may belong to it.
func parse(address string) (server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return server{}, errors.New("the mail server's address must look like smtp://user:password@host:587, with special characters in user and password percent-encoded")
	}
	s := server{host: u.Hostname(), port: 587}
	if u.Scheme == "smtps" {
		s.port = 465
	}
	if u.Port() != "" {
		s.port, err = strconv.Atoi(u.Port())
	}
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return s, errors.New("the mail server's address must begin with smtp:// or smtps://")
	case s.host == "", strings.ContainsFunc(s.host, notInHost) && !isIPv6(s.host):
		return s, errors.New("the mail server's address names no host; an IPv6 address needs brackets")
	case u.Path != "" && u.Path != "/", u.Fragment != "", u.Opaque != "":
		return s, errors.New("the mail server's address has something after the host; special characters in user and password must be percent-encoded")
	case err != nil || s.port < 1 || s.port > 65535:
		return s, errors.New("the port in the mail server's address is not from 1 to 65535")
	}
	if err := s.setSecurity(u); err != nil {
		return s, err
	}
	return s, s.setLogin(u)
}

func (s *server) setSecurity(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	option := query.Get("tls")
	if err != nil || len(query) > 1 || len(query) == 1 && option != "on" && option != "off" {
		return errors.New("after the host, the mail server's address may have only ?tls=on or ?tls=off; special characters in user and password must be percent-encoded")
	}
	switch {
	case u.Scheme == "smtps" && option == "off":
		return errors.New("smtps:// and tls=off in the mail server's address contradict each other")
	case u.Scheme == "smtps":
		s.security = implicitTLS
	case option == "off", option == "" && loopback(s.host):
		s.security = noTLS
	}
	return nil
}

func (s *server) setLogin(u *url.URL) error {
	if u.User == nil {
		return nil
	}
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	switch {
	case s.user == "" || s.password == "":
		return errors.New("the mail server's address needs both user and password, or neither")
	case s.security == noTLS && !loopback(s.host):
		return errors.New("with tls=off no password is sent to the mail server: it could be read on the way")
	}
	return nil
}

// notInHost reports whether a host name cannot contain r.
func notInHost(r rune) bool {
	return r == ':' || r == '%' || unicode.IsSpace(r) || unicode.IsControl(r)
}

func isIPv6(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil &&
		a.Is6() &&
		contact.IsASCII(a.Zone()) &&
		!strings.ContainsFunc(a.Zone(), notInHost)
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
