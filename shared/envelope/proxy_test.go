package envelope

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/fault"
)

func TestOnlyTheProxyTellsWhoItsClientIs(t *testing.T) {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("open sesame")))
	right := http.Header{"X-Proxy": {"open sesame"}}
	for _, c := range []struct {
		client, told string
		secret       http.Header
		want         string
	}{
		{client: "CloudFront-Viewer-Address", told: "198.51.100.10:46532", secret: right, want: "198.51.100.10"},
		{client: "cloudfront-viewer-address", told: "2001:db8::1:4653", secret: right, want: "2001:db8::1"},
		{client: "CloudFront-Viewer-Address", told: "[2001:db8::1]:4653", secret: right, want: "2001:db8::1"},
		{client: "CloudFront-Viewer-Address", told: "198.51.100.10", secret: right, want: "192.0.2.1"},
		{client: "X-Forwarded-For", told: "6.6.6.6, 198.51.100.10", secret: right, want: "198.51.100.10"},
		{client: "X-Forwarded-For/1", told: "198.51.100.10:8080", secret: right, want: "198.51.100.10"},
		{client: "X-Forwarded-For/2", told: "6.6.6.6,198.51.100.10 , 192.0.2.77", secret: right, want: "198.51.100.10"},
		{client: "X-Forwarded-For/2", told: "198.51.100.10", secret: right, want: "192.0.2.1"},
		{client: "X-Real-IP", told: "2001:db8::1", secret: right, want: "2001:db8::1"},
		{client: "X-Real-IP", told: "somebody", secret: right, want: "192.0.2.1"},
		{client: "X-Real-IP", secret: right, want: "192.0.2.1"},
		{client: "X-Real-IP", told: "198.51.100.10", want: "192.0.2.1"},
		{client: "X-Real-IP", told: "198.51.100.10", secret: http.Header{"X-Proxy": {"open sesam"}}, want: "192.0.2.1"},
		{client: "X-Real-IP", told: "198.51.100.10", secret: http.Header{"X-Proxy": {""}}, want: "192.0.2.1"},
		{client: "X-Real-IP", told: "198.51.100.10", secret: http.Header{"X-Proxy": {hash}}, want: "192.0.2.1"},
	} {
		p, err := ParseProxy(c.client, "x-proxy:"+hash)
		if err != nil {
			t.Fatalf("%s: %v", c.client, err)
		}
		if got := seenThrough(p, c.client, c.told, c.secret); got != c.want {
			t.Errorf("%s %q with %v: the client is %s, want %s", c.client, c.told, c.secret, got, c.want)
		}
	}
	if got := seenThrough(LastForwarded(), "X-Forwarded-For", "6.6.6.6, 198.51.100.10", nil); got != "198.51.100.10" {
		t.Errorf("the last entry is %s", got)
	}
	if got := seenThrough(Proxy{}, "X-Forwarded-For", "198.51.100.10", right); got != "192.0.2.1" {
		t.Errorf("without a proxy the client is %s", got)
	}
}

// seenThrough returns the address of a client that the proxy tells of.
func seenThrough(p Proxy, client, told string, secret http.Header) (addr string) {
	r := httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
	for name, values := range secret {
		r.Header[name] = values
	}
	name, _, _ := strings.Cut(client, "/")
	r.Header.Set(name, told)
	p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		addr = fault.Address(r).String()
	})).ServeHTTP(httptest.NewRecorder(), r)
	return addr
}

func TestNonsenseAboutAProxyIsRefused(t *testing.T) {
	hash := strings.Repeat("0f", sha256.Size)
	if p, err := ParseProxy("", ""); err != nil || p != (Proxy{}) {
		t.Errorf("nothing: %v, %v", p, err)
	}
	for _, c := range [][2]string{
		{"X-Real-IP", ""}, {"", "X-Proxy:" + hash}, {"X-Real-IP", "X-Proxy:my plain secret"}, {"X-Real-IP", hash},
		{"X-Real-IP", "X-Proxy:" + hash + "0f"}, {"X-Real-IP", "X-Proxy:" + hash[2:]}, {"X-Real-IP", ":" + hash},
		{"X-Real-IP", "X Proxy:" + hash}, {"X-Real-IP/0", "X-Proxy:" + hash}, {"X-Real-IP/-1", "X-Proxy:" + hash},
		{"X-Real-IP/", "X-Proxy:" + hash}, {"X-Real-IP/one", "X-Proxy:" + hash}, {"/1", "X-Proxy:" + hash},
		{"X-Real:IP", "X-Proxy:" + hash},
	} {
		p, err := ParseProxy(c[0], c[1])
		if err == nil || p != (Proxy{}) || strings.Contains(err.Error(), "plain") {
			t.Errorf("%q, %q: %v, %v", c[0], c[1], p, err)
		}
	}
}
