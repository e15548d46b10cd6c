package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ferry/infra/ferry/cli"
)

// freeAddr returns an address that nothing listens on. Its port is below those that the
// system chooses for others, who would take it before the test does.
func freeAddr(t testing.TB) string {
	t.Helper()
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			must(t, l.Close())
			return addr
		}
	}
}

// get returns the status and the body of an answer, without following redirects.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(body)
}

// TestTheServersOptionsEnd: net/http must not answer them.
func TestTheServersOptionsEnd(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", serve(t, t.TempDir()).addr)
	must(t, err)
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Minute))
	fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || strings.Contains(string(answer), " 200 ") {
		t.Errorf("%s, %v", answer, err)
	}
}

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	s := serve(t, t.TempDir(), "--metrics-addr", metrics)
	if resp, body := get(t, "http://"+metrics+"/metrics"); resp.StatusCode != 200 ||
		!strings.Contains(body, "ferry_disk_free_bytes") {
		t.Errorf("%s: %s", resp.Status, body)
	}
	if resp, _ := get(t, "http://"+s.addr+"/metrics"); resp.StatusCode != 404 {
		t.Errorf("the service's own address has metrics: %s", resp.Status)
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("the server ended with code %d: %s", code, s.errs)
	}
}

// TestAPathPrefixWorksWithoutRewriting sends and gets files through a proxy that passes
// paths on as they are.
func TestAPathPrefixWorksWithoutRewriting(t *testing.T) {
	t.Parallel()
	var backend *url.URL
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }})
	t.Cleanup(proxy.Close)
	public, h := proxy.URL+"/team%20a/files/v1", newHome(t)
	s := serve(t, h.dir, "--public-url", public)
	root := "http://" + s.addr
	backend, _ = url.Parse(root)
	for path, want := range map[string]int{
		"/team%20a/files/v1/health": 200, "/v1/health": 200, "/team%20a/files/": 200, "/team%20a/files": 302, "/": 200,
		"/team%20a/filesv1/health": 404, "/files/v1/health": 404, "/team%20a/files//v1/health": 404, "/team%20a/files/nothing": 404,
	} {
		if resp, body := get(t, root+path); resp.StatusCode != want ||
			want == 404 && !strings.Contains(body, `"status":404`) {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	for _, args := range [][]string{
		{"user", "add", "ann", "--active", "--password-stdin"}, {"login", public, "--user", "ann", "--password-stdin"},
	} {
		h.run(annsPassword+"\n", args...).want(t, exitOK)
	}
	for name, size := range map[string]int{"small": 13, "large": 20 << 20} { // the large one goes in parts
		content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		h.write(name, content)
		up := h.run("", "up", name)
		link := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(public) + `/\S+$`).FindString(up.out)
		if up.code != exitOK || link == "" {
			t.Errorf("up %s: code %d: %s%s", name, up.code, up.out, up.err)
			continue
		}
		if r := h.run("", "get", link, "-o", "copy-"+name); r.code != exitOK ||
			h.read("copy-"+name) != string(content) {
			t.Errorf("get %s: code %d: %s", name, r.code, r.err)
		}
	}
	if r := h.run("", "ls"); strings.Count(r.out, "\n") != 3 {
		t.Errorf("ls prints %s%s", r.out, r.err)
	}
}

// TestTheLogShowsTheClientThatTheProxyTellsOf sends requests with the secret, and with a guess.
func TestTheLogShowsTheClientThatTheProxyTellsOf(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--client-header=X-Forwarded-For/2", "--log=json",
		fmt.Sprintf("--proxy-secret=X-Proxy:%x", sha256.Sum256([]byte("open sesame"))))
	for _, secret := range []string{"open sesame", "a guess"} {
		req, err := http.NewRequest("GET", s.base+"/health", nil)
		must(t, err)
		req.Header.Set("X-Proxy", secret)
		req.Header.Set("X-Forwarded-For", "6.6.6.6, 198.51.100.10, 192.0.2.7")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("code %d", code)
	}
	log := s.errs.String()
	if strings.Count(log, `"address":"198.51.100.10"`) != 1 || !strings.Contains(log, `"address":"127.0.0.1"`) {
		t.Errorf("the log shows %s", log)
	}
	if strings.Contains(log, "sesame") || strings.Contains(log, "6.6.6.6") {
		t.Errorf("the log shows a header: %s", log)
	}
}

// writePair writes a new certificate and its key, and returns what trusts it.
func writePair(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	about := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{"files.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	must(t, err)
	private, _ := x509.MarshalPKCS8PrivateKey(key)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{
		"cert.pem": cert,
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return roots
}

// secured starts ferry serve with a certificate, and waits until ferry health says that
// it works. It returns its address and its greeting.
func secured(t *testing.T, args ...string) (addr string, greeting func() string) {
	t.Helper()
	addr, dir := freeAddr(t), t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	must(t, err)
	defer out.Close()
	args = append([]string{"--addr", addr}, args...)
	cmd := ferry(context.Background(), dir, append([]string{"serve", "--no-demo"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	start(t, cmd)
	healthy(t, args[:6]...)
	return addr, func() string {
		text, _ := os.ReadFile(out.Name())
		return string(text)
	}
}

// handshake connects, and returns the connection's state.
func handshake(addr string, config *tls.Config) (tls.ConnectionState, error) {
	config.ServerName = "files.example.com"
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

func TestAChangedCertificateIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	pair := t.TempDir()
	first := writePair(t, pair)
	cert, key := filepath.Join(pair, "cert.pem"), filepath.Join(pair, "key.pem")
	addr, printed := secured(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.Contains(printed(), "https://"+addr+"/v1") {
		t.Errorf("it says %s", printed())
	}
	state, err := handshake(addr, &tls.Config{RootCAs: first, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil || state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("protocol %q, %v", state.NegotiatedProtocol, err)
	}
	if _, err := handshake(addr, &tls.Config{
		RootCAs:    first,
		MaxVersion: tls.VersionTLS11,
		MinVersion: tls.VersionTLS10,
	}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	must(t, os.WriteFile(cert, []byte("half of a renewal"), 0o600))
	if _, err := handshake(addr, &tls.Config{RootCAs: first}); err != nil {
		t.Errorf("while a renewal is half done: %v", err)
	}
	second := writePair(t, pair)
	if _, err := handshake(addr, &tls.Config{RootCAs: second}); err != nil {
		t.Errorf("after a renewal: %v", err)
	}
	if n := strings.Count(printed(), "cannot be used; the last one stays"); n != 1 {
		t.Errorf("the log tells %d times of the unusable file: %s", n, printed())
	}
}

func TestPlainHTTPOnlyRedirectsToThePortOfThePublicURL(t *testing.T) {
	t.Parallel()
	pair, plain := t.TempDir(), ""
	writePair(t, pair)
	for public, port := range map[string]string{
		"":                                  "",
		"https://files.example.com/v1":      "none",
		"https://files.example.com:8443/v1": ":8443",
	} {
		plain = freeAddr(t)
		args := []string{
			"--tls-cert", filepath.Join(pair, "cert.pem"), "--tls-key", filepath.Join(pair, "key.pem"), "--http-addr",
			plain,
		}
		addr, _ := secured(t, append(args, "--public-url", public)...)
		if port == "" {
			port = strings.TrimPrefix(addr, "127.0.0.1")
		}
		resp, _ := get(t, "http://"+plain+"/v1/download/file?k=token")
		want := "https://127.0.0.1" + strings.TrimPrefix(port, "none") + "/v1/download/file?k=token"
		if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != want {
			t.Errorf("%q: %s to %s, want %s", public, resp.Status, got, want)
		}
	}
	post, err := http.Post("http://"+plain+"/v1/auth/login", "", nil)
	must(t, err)
	post.Body.Close()
	if post.StatusCode != 400 {
		t.Errorf("a POST is answered with %s", post.Status)
	}
}

// TestASignalLetsRequestsFinish sends each signal in the middle of an upload.
func TestASignalLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	heard := make(chan os.Signal, 1) // a signal that is ignored here, as under nohup, would be ignored there too
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		s := serve(t, t.TempDir())
		send, ended := s.begin()
		fmt.Fprint(send, "one half, ")
		must(t, s.Process.Signal(signal))
		eventually(t, s.errs, func() bool {
			conn, err := net.Dial("tcp", s.addr)
			if err == nil {
				conn.Close()
			}
			return err != nil // it takes no more requests
		})
		fmt.Fprint(send, "and the other")
		send.Close()
		status := <-ended
		if _ = s.Wait(); status != 200 || s.ProcessState.ExitCode() != exitOK {
			t.Errorf("%s: the upload ended with status %d, the service with code %d: %s",
				signal, status, s.ProcessState.ExitCode(), s.errs)
		}
	}
}

func TestAServiceThatIgnoresTheEndOfTheTerminalLivesOn(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	cmd := ferry(t.Context(), t.TempDir(), "serve", "--addr", addr)
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...) // as nohup does
	cmd.Path = "/bin/sh"
	start(t, cmd)
	healthy(t, "--addr", addr)
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	runFerry(t, t.TempDir(), "", "health", "--addr", addr).want(t, exitOK)
}

// TestAnAddressThatNoLinkCanHaveIsRefused starts services that would make links to
// http://[::]:8190.
func TestAnAddressThatNoLinkCanHaveIsRefused(t *testing.T) {
	t.Parallel()
	pair := t.TempDir()
	writePair(t, pair)
	certificate := []string{
		"serve", "--addr", ":0", "--tls-cert", filepath.Join(pair, "cert.pem"), "--tls-key",
		filepath.Join(pair, "key.pem"),
	}
	for scheme, args := range map[string][]string{"http": {"serve", "--addr", "[::]:0"}, "https": certificate} {
		r := runFerry(t, t.TempDir(), "", args...)
		line := regexp.MustCompile(` FERRY_PUBLIC_URL=` + scheme + `://(.+):\d+/v1\n$`).FindStringSubmatch(r.err)
		if r.code != exitSettings || line == nil || !strings.Contains(r.err, "--tls-domain") {
			t.Fatalf("%s: code %d: %s", args, r.code, r.err)
		}
		l, err := net.Listen("tcp", line[1]+":0") // it is this machine's, or its name
		if err != nil || cli.Loopback(&url.URL{Host: line[1]}) || net.ParseIP(line[1]).IsUnspecified() {
			t.Fatalf("%s is not this machine's: %v", line[1], err)
		}
		l.Close()
	}
	_, port, _ := net.SplitHostPort(freeAddr(t))
	cmd := ferry(
		t.Context(),
		t.TempDir(),
		"serve",
		"--addr",
		"0.0.0.0:"+port,
		"--public-url=http://127.0.0.1:"+port+"/v1",
	)
	start(t, cmd)
	healthy(t, "--addr", "0.0.0.0:"+port) // with a public URL it starts
}

// TestALowPortSaysWhatToDo binds to a port as a user who may not.
func TestALowPortSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:1"
	cmd := ferry(t.Context(), t.TempDir(), "serve", "--addr", addr)
	if os.Getuid() == 0 {
		cmd.Path = "/proc/self/exe" // the test's own folder is closed to others
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	text, err := cmd.CombinedOutput()
	if first, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil ||
		string(first) != "1024\n" {
		t.Skip("here everybody may use low ports")
	}
	wantSentence(t, result{
		err:  string(text),
		code: cmd.ProcessState.ExitCode(),
	}, exitPort, "cannot listen on "+addr+": permission denied; ")
	if !regexp.MustCompile(`AmbientCapabilities=CAP_NET_BIND_SERVICE .* setcap cap_net_bind_service=\+ep .* 1024 .* FERRY_ADDR`).
		Match(text) {
		t.Errorf("it says %s", text)
	}
}
