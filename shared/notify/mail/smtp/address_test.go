package smtp

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

func TestParseReadsGoodAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]server{
		// smtp means STARTTLS on port 587, smtps TLS on port 465
		"smtp://mx.example.org":   {host: "mx.example.org", port: 587},
		"smtps://mx.example.org/": {host: "mx.example.org", port: 465, security: implicitTLS},
		// a port and a login are taken
		"smtp://ann%40example.org:p%3Aw%2Fd@mx.example.org:2525": {
			host: "mx.example.org", port: 2525, user: "ann@example.org", password: "p:w/d",
		},
		// a loopback host needs no TLS, even for a password, but may have it
		"smtp://127.0.0.1:1025":   {host: "127.0.0.1", port: 1025, security: noTLS},
		"smtp://u:p@[::1]:1025":   {host: "::1", port: 1025, user: "u", password: "p", security: noTLS},
		"smtp://localhost?tls=on": {host: "localhost", port: 587},
		// TLS can be left out in a closed network
		"smtp://relay:25?tls=off": {host: "relay", port: 25, security: noTLS},
	} {
		if got, err := parse(address); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", address, got, err)
		}
	}
}

func TestParseRefusesBadAddresses(t *testing.T) {
	t.Parallel()
	for address, says := range map[string]string{
		"":                                         "must begin with smtp://",  // an empty one
		"mx.example.org:587":                       "must begin with smtp://",  // a host alone
		"smtp://:587":                              "names no host",            // no host
		"smtp://mx.example.org:70000":              "not from 1 to 65535",      // a port out of range
		"smtp://mx.example.org/path":               "after the host",           // a path
		"smtp://mx.example.org?starttls=no":        "only ?tls=on or ?tls=off", // an unknown option
		"smtp://mx.example.org?tls=maybe":          "only ?tls=on or ?tls=off", // an unknown value
		"smtps://mx.example.org?tls=off":           "contradict",               // smtps without TLS
		"smtp://ann@mx.example.org":                "both user and password",   // a user without password
		"smtp://ann:s3cret@mx.example.org?tls=off": "no password is sent",      // a password in the open
		"smtp://ann:s3/cret@mx.example.org":        "percent-encoded",          // a slash in the password
		"smtp://ann:5#s3cret@mx.example.org":       "percent-encoded",          // a hash in the password
		"smtp://ann:5?s3cret@mx.example.org":       "percent-encoded",          // a question mark in the password
		"smtp://ann:s3cret%zz@mx.example.org":      "percent-encoded",          // a bad escape in the password
	} {
		_, err := New(address)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("%s: got %v", address, err)
		}
		for _, secret := range []string{"s3", "cret", "ann"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %q in the error: %v", address, secret, err)
			}
		}
	}
}

func FuzzAServerAddressIsSafeOrRefused(f *testing.F) {
	for _, address := range []string{
		"smtp://user:password@mail.example.com:587", "smtps://mail.example.com", "smtp://127.0.0.1:25?tls=off", "smtp://[::1]:2525", "smtp://u:p%40ss@h?tls=on",
		"smtp://u:p@ss/word@h", "smtp://h\r\nRCPT", "smtp://u:p@h?tls=off", "smtp://h:0", "smtp://h:99999", "http://h", "smtp://h%0d", "smtp://::1", "smtp://[fe80::1%25eth0]:25", "smtp://[::%25\xff]", "smtp://[::%25%20]", "",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if _, err := parse(address + "SECRET"); err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q is quoted: %v", address+"SECRET", err)
		}
		s, err := parse(address)
		if err != nil {
			return
		}
		if s.host == "" || s.port < 1 || s.port > 65535 || (s.user == "") != (s.password == "") {
			t.Errorf("%q is %+v", address, s)
		}
		if strings.ContainsFunc(s.host, func(r rune) bool {
			return r <= ' ' || r == '/' || r == '@' || unicode.IsControl(r) || unicode.IsSpace(r)
		}) {
			t.Errorf("%q has the host %q", address, s.host)
		}
		if s.password != "" && s.security == noTLS && !loopback(s.host) {
			t.Errorf("%q sends its password openly", address)
		}
		u := url.URL{Scheme: "smtp", Host: net.JoinHostPort(s.host, strconv.Itoa(s.port)), RawQuery: "tls=on"}
		switch s.security {
		case implicitTLS:
			u.Scheme = "smtps"
		case noTLS:
			u.RawQuery = "tls=off"
		}
		if s.user != "" {
			u.User = url.UserPassword(s.user, s.password)
		}
		if again, err := parse(u.String()); err != nil || again != s {
			t.Errorf("%q is %+v, and %q is %+v, %v", address, s, u.String(), again, err)
		}
	})
}
