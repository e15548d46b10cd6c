package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

func TestOnlyALoopbackAddressIsPrivate(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]bool{
		"127.0.0.1": true,
		"::1":       true,
		"0.0.0.0":   false,
		"::":        false,
		"192.0.2.1": false,
	} {
		if (Command{}).private(&net.TCPAddr{IP: net.ParseIP(ip)}) != want {
			t.Errorf("whether %s is private is not %v", ip, want)
		}
	}
}

func TestABodyThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	preflight := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	short := httptest.NewServer(bounded(preflight, 50*time.Millisecond))
	t.Cleanup(short.Close)
	conn, err := net.Dial("tcp", short.Listener.Addr().String())
	expect.NoErr(t, err)
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Minute))
	fmt.Fprint(conn, "OPTIONS / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || strings.Contains(string(answer), " 200 ") {
		t.Errorf("%s, %v", answer, err)
	}
}

func TestThePublicURLFollowsTheDomainAndThePort(t *testing.T) {
	t.Parallel()
	domain := []string{"files.example.com"}
	for _, c := range []struct {
		where where
		addr  string
		want  string
	}{
		{where: where{}, addr: "127.0.0.1:8080", want: "http://127.0.0.1:8080/v1"},
		{where: where{Cert: "x"}, addr: "127.0.0.1:8080", want: "https://127.0.0.1:8080/v1"},
		{where: where{Domains: domain}, addr: "[::]:443", want: "https://files.example.com/v1"},
		{where: where{Domains: domain}, addr: "[::]:8443", want: "https://files.example.com:8443/v1"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		expect.NoErr(t, err)
		if got, err := c.where.publicURL(addr); got != c.want || err != nil {
			t.Errorf("%v at %s: %s, %v", c.where, c.addr, got, err)
		}
	}
	if got := (where{Domains: domain}).listenOn(); got != ":443" {
		t.Errorf("it listens on %s", got)
	}
}
