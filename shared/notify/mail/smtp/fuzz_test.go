package smtp

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

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
