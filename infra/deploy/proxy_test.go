package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// behind starts ferry and its metrics behind a proxy at address public, and tries both:
// a large upload that is passed on while it comes, its download, and the address that is
// logged.
func behind(t *testing.T, backend, public string, client *http.Client, proxy func() (out string)) {
	t.Helper()
	metrics := freeAddr(t)
	log := serve(
		t,
		t.TempDir(),
		"FERRY_ADDR="+backend,
		"FERRY_PUBLIC_URL="+public,
		"FERRY_TRUST_PROXY=true",
		"FERRY_METRICS_ADDR="+metrics,
	)
	out := proxy()
	until(t, "the start of the proxy", func() bool {
		resp, err := client.Get(public + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	}, out, log)

	body, send := io.Pipe()
	var link string
	done := make(chan error, 1)
	go func() {
		var err error
		link, err = upload(t.Context(), client, public, body)
		body.CloseWithError(io.ErrClosedPipe)
		done <- err
	}()
	_, err := send.Write(content[:1<<20])
	check(t, err)
	until(t, "an upload that is not held back", func() bool {
		resp, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(text), `ferry_requests_open{route="PUT /v1/upload"} 1`)
	}, out, log)
	_, err = send.Write(content[1<<20:])
	check(t, err)
	send.Close()
	check(t, <-done)

	if !strings.HasPrefix(link, public+"/") {
		t.Fatalf("the link is %s", link)
	}
	download(t, client, link)
	if text := read(t, log); strings.Contains(text, "203.0.113.9") ||
		!strings.Contains(text, `"address":"127.0.0.1","login":"basic","user":"ann"`) {
		t.Errorf("the log shows another address: %s", text)
	}
}

func TestFerryWorksBehindNginx(t *testing.T) {
	t.Parallel()
	backend, front := freeAddr(t), freeAddr(t)
	plain := freeAddr(t)
	nginx, roots := withNginx(
		t,
		front,
		"127.0.0.1:8080",
		backend,
		"location /",
		"location /files/",
		"listen 80;",
		"listen "+plain+";",
	)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
	behind(t, backend, "https://"+front+"/files/v1", client, nginx)
	public := []string{front}
	if hasIPv6() {
		_, port, _ := net.SplitHostPort(front)
		public = append(public, "[::1]:"+port)
		client.Transport.(*http.Transport).TLSClientConfig.ServerName = "127.0.0.1"
	}
	for _, at := range public {
		resp, err := client.Get("https://" + at + "/files/v1/health")
		check(t, err)
		if resp.Body.Close(); resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Errorf("%s: %s, %s", at, resp.Status, resp.Proto)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(
		t.Context(),
		"GET",
		"http://"+plain+"/files/send?a=b",
		nil,
	))
	check(t, err)
	if to := resp.Header.Get("Location"); resp.Body.Close() != nil ||
		resp.StatusCode != 301 ||
		to != "https://127.0.0.1/files/send?a=b" {
		t.Errorf("port 80 answers %s, %s", resp.Status, to)
	}
}

// hasIPv6 reports whether this machine can listen there.
func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	return err == nil && l.Close() == nil
}

// withNginx returns a function that starts nginx at front with our file, in which parts are
// replaced, and who signed its certificate.
func withNginx(t *testing.T, front string, parts ...string) (begin func() (out string), roots *x509.CertPool) {
	t.Helper()
	nginx, dir := tool(t, "nginx"), t.TempDir()
	cert, key := pair(t)
	_, port, _ := net.SplitHostPort(front)
	secure := "" // with IPv6
	if hasIPv6() {
		secure = "listen [::1]:" + port + " ssl http2;"
	}
	site := replaced(t, read(t, "nginx.conf"), append(parts, "listen 443 ssl", "listen "+front+" ssl",
		"listen [::]:443 ssl http2;", secure, "listen [::]:80;", "", "listen 80;", "listen "+freeAddr(t)+";",
		"/etc/ssl/files.example.com.pem", cert, "/etc/ssl/files.example.com.key", key)...)
	whole := "daemon off; pid " + dir + "/pid; error_log stderr; user root;\nevents {}\nhttp { access_log off;\n"
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += name + "_temp_path " + dir + "/" + name + ";\n"
	}
	config := write(t, dir+"/nginx.conf", whole+site+"}\n")
	return func() string { return start(t, nil, nginx, "-p", dir, "-c", config) }, pool(t, read(t, cert))
}

// TestNginxProvesWhoItsClientIs follows the operators' page.
func TestNginxProvesWhoItsClientIs(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(read(t, "../README.md"), "## Behind a CDN or a proxy")
	block := func(begin string) (text string) {
		_, text, _ = strings.Cut(page, "```"+begin+"\n")
		text, page, _ = strings.Cut(text, "```\n")
		return text
	}
	dir := t.TempDir()
	secret := exec.CommandContext(t.Context(), "bash", "-ec", block("sh"))
	secret.Dir = dir
	hash, err := secret.Output()
	check(t, err)
	backend, front := freeAddr(t), freeAddr(t)
	headers := replaced(t, block(""), "9f2c...", read(t, dir+"/secret"))
	begin, roots := withNginx(
		t,
		front,
		"127.0.0.1:8080",
		backend,
		`proxy_set_header Connection "";`,
		`proxy_set_header Connection "";`+"\n"+headers,
	)
	log := serve(t, t.TempDir(), "FERRY_ADDR="+backend, "FERRY_PUBLIC_URL=https://"+front+"/v1",
		"FERRY_CLIENT_HEADER=X-Real-IP", "FERRY_PROXY_SECRET="+strings.TrimSpace(string(hash)))
	out := begin()
	asks := func(base string) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots},
			DialContext:     dialer.DialContext,
		}}
		defer client.CloseIdleConnections()
		until(t, "an answer of "+base, func() bool {
			req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/v1/download/list", nil)
			check(t, err)
			req.SetBasicAuth("ann", password)
			for _, name := range []string{"X-Real-IP", "X-Forwarded-For"} {
				req.Header.Set(name, "203.0.113.9") // nobody may choose an address
			}
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil && resp.StatusCode == 200
		}, out, log)
	}
	asks("https://" + front)
	asks("http://" + backend)
	text := read(t, log)
	if n := strings.Count(text, `"address":"127.0.0.7","login":"basic","user":"ann"`); n != 2 ||
		strings.Contains(text, "203.0.113.9") {
		t.Errorf("%d of 2 requests have their client's address: %s", n, text)
	}
}

func TestFerryWorksBehindCaddy(t *testing.T) {
	t.Parallel()
	caddy, dir := tool(t, "caddy"), t.TempDir()
	backend, front := freeAddr(t), freeAddr(t)
	config := write(
		t,
		dir+"/Caddyfile",
		"{\n\tadmin off\n}\n"+replaced(
			t,
			read(t, "Caddyfile"),
			"files.example.com {",
			"http://"+front+" {",
			"127.0.0.1:8080",
			backend,
		),
	)
	behind(t, backend, "http://"+front+"/v1", &http.Client{}, func() string {
		return start(t, []string{
			"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir,
		}, caddy, "run", "--adapter", "caddyfile", "--config", config)
	})
}
