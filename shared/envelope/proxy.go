package envelope

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"ferry/shared/lazy"
)

// viewerAddress is CloudFront's header with an address and a port. An IPv6 address has no
// brackets there.
const viewerAddress = "CloudFront-Viewer-Address"

// Proxy is a server in front of the service, such as a CDN, that says who its client is. The zero
// Proxy stands for none.
type Proxy struct {
	client string // header with the client's address
	entry  int    // of that header, counted from the right; 1 is the last
	name   string // header with the secret that only the proxy knows; "" is none
	hash   [sha256.Size]byte
}

// LastForwarded returns the Proxy that adds the last entry of X-Forwarded-For, for a service
// that can be reached only through it. Anyone can forge the other entries.
func LastForwarded() Proxy { return Proxy{client: "X-Forwarded-For", entry: 1} }

// ParseProxy returns the Proxy that names its client in a header such as CloudFront-Viewer-Address,
// or X-Forwarded-For/2 for that header's last entry but one. secret describes the header that
// proves the proxy's identity: its name, a colon, and its value's SHA-256 in hexadecimal digits. If
// both are empty, there is no Proxy.
func ParseProxy(client, secret string) (p Proxy, err error) {
	if client == "" && secret == "" {
		return p, nil
	}
	name, entry, counted := strings.Cut(client, "/")
	p = Proxy{client: name, entry: 1}
	if counted {
		p.entry, err = strconv.Atoi(entry)
	}
	if err != nil || p.entry < 1 || !isHeader(name) {
		return Proxy{}, errors.New("the client's header must be one such as CloudFront-Viewer-Address or X-Forwarded-For/2")
	}
	name, digits, _ := strings.Cut(secret, ":")
	hash, err := hex.DecodeString(digits)
	if err != nil || len(hash) != sha256.Size || !isHeader(name) {
		return Proxy{}, errors.New("the proxy's secret must be a header's name, a colon, and the SHA-256 of its value in 64 hexadecimal digits")
	}
	p.name, p.hash = name, [sha256.Size]byte(hash)
	return p, nil
}

func isHeader(name string) bool {
	return name != "" &&
		strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Handler passes requests from the proxy to next with their client's address. Other requests keep
// the address that they come from.
func (p Proxy) Handler(next http.Handler) http.Handler {
	if p == (Proxy{}) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if addr := p.address(r.Header); addr.IsValid() {
			r.RemoteAddr = net.JoinHostPort(addr.String(), "0")
		}
		next.ServeHTTP(w, r)
	})
}

// address returns the client's address, if the proxy has sent the request and names its client.
func (p Proxy) address(h http.Header) netip.Addr {
	if hash := sha256.Sum256([]byte(h.Get(p.name))); p.name != "" &&
		subtle.ConstantTimeCompare(hash[:], p.hash[:]) == 0 {
		return netip.Addr{}
	}
	entries := strings.Split(strings.Join(h.Values(p.client), ","), ",")
	if len(entries) < p.entry {
		return netip.Addr{}
	}
	text := strings.TrimSpace(entries[len(entries)-p.entry])
	if strings.EqualFold(p.client, viewerAddress) {
		text = text[:max(0, strings.LastIndexByte(text, ':'))]
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		with, _ := netip.ParseAddrPort(text)
		addr = with.Addr()
	}
	return addr
}

// ofProxy matches the headers that proxies, caches and load balancers add.
var ofProxy = lazy.Regexp(`^(X-)?(Forwarded|Original-|Real-|Remote-|Proxy|Via|Surrogate-|Envoy-|Varnish|Amz|Azure-|` +
	`Appengine-|Cloud|Cdn-|Cf-|Fastly-|Fly-)|-Ip$`)

// ViaProxy reports whether a request seems to come from a proxy: it has a proxy's header, or
// uses HTTP/1.0, nginx's default.
func ViaProxy(r *http.Request) bool {
	for name := range r.Header {
		if ofProxy().MatchString(name) {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}
