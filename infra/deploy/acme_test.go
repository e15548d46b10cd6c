package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pair writes a certificate for 127.0.0.1, and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	own := s.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	check(t, err)
	dir := t.TempDir()
	return write(t, dir+"/cert.pem", string(pem.EncodeToMemory(&pem.Block{
			Type:  "CERTIFICATE",
			Bytes: own.Certificate[0],
		}))),
		write(t, dir+"/key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func pool(t *testing.T, text string) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM([]byte(text)) {
		t.Fatalf("no certificate: %s", text)
	}
	return p
}

func TestServeGetsItsCertificateByACME(t *testing.T) {
	t.Parallel()
	dir, addr, directory, management := t.TempDir(), freeAddr(t), freeAddr(t), freeAddr(t)
	const pebbles = "github.com/letsencrypt/pebble/v2/cmd/"
	build := exec.CommandContext(
		t.Context(),
		"go",
		"build",
		"-C",
		"pebble",
		"-o",
		dir+"/",
		pebbles+"pebble",
		pebbles+"pebble-challtestsrv",
	)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as ferry
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the ACME server: %v\n%s", err, out)
	}
	cert, key := pair(t)
	_, port, _ := net.SplitHostPort(addr)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": directory, "managementListenAddress": management, "certificate": cert, "privateKey": key,
		"tlsPort": json.Number(port), "httpPort": 1, "profiles": map[string]any{"default": map[string]any{"validityPeriod": 7776000}},
	}})
	check(t, err)
	names := freeAddr(t) // of a server that answers all questions for an IPv4 address with 127.0.0.1
	start(
		t,
		nil,
		dir+"/pebble-challtestsrv",
		"-dnsserver="+names,
		"-management="+freeAddr(t),
		"-defaultIPv6=",
		"-http01=",
		"-https01=",
		"-tlsalpn01=",
		"-doh=",
	)
	until(t, "the start of the name server", func() bool {
		conn, err := net.Dial("tcp", names)
		return err == nil && conn.Close() == nil
	})
	pebble := start(
		t,
		[]string{"PEBBLE_VA_NOSLEEP=1"},
		dir+"/pebble",
		"-strict",
		"-config",
		write(t, dir+"/config.json", string(config)),
		"-dnsserver",
		names,
	)
	asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(t, read(t, cert))}}}
	var root []byte
	until(t, "the start of pebble", func() bool {
		resp, err := asking.Get("https://" + management + "/roots/0")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		root, err = io.ReadAll(resp.Body)
		return err == nil
	}, pebble)

	data := filepath.Join(dir, "data")
	env := []string{
		"FERRY_TLS_DOMAIN=files.example.com", "FERRY_ADDR=" +
			addr, "FERRY_ACME_URL=https://" + directory + "/dir", "SSL_CERT_FILE=" + cert,
		"FERRY_DATA=" + data, "FERRY_METRICS_ADDR=" + freeAddr(t),
	}
	certified := func(env ...string) (out string) {
		out = start(t, env, program(t), "serve")
		until(t, "a certificate", func() bool {
			return strings.Contains(read(t, out), "the certificate is ready")
		}, out, pebble)
		return out
	}
	out := certified(env...)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool(t, string(root)), ServerName: "files.example.com"},
	}}
	resp, err := client.Get("https://" + addr + "/v1/health")
	check(t, err)
	resp.Body.Close()
	issuer := resp.TLS.PeerCertificates[0].Issuer.CommonName
	if resp.StatusCode != 200 ||
		!strings.Contains(issuer, "Pebble") ||
		resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s, issued by %s, %v", resp.Status, issuer, resp.Header)
	}
	if text := read(t, out); !strings.Contains(text, "https://files.example.com:"+port+"/v1") ||
		strings.Contains(text, "password") {
		t.Errorf("it says %s", text)
	}
	if _, err := tls.Dial("tcp", addr, &tls.Config{
		RootCAs:    pool(t, string(root)),
		ServerName: "other.example.com",
	}); err == nil {
		t.Error("another name gets a certificate too")
	}
	check(t, run(t, env, "", "health"))
	kept, err := os.ReadDir(filepath.Join(data, "acme"))
	check(t, err)
	for _, file := range kept {
		if info, _ := file.Info(); info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v", file.Name(), info.Mode())
		}
	}
	if info, err := os.Stat(filepath.Join(data, "acme")); err != nil || info.Mode().Perm() != 0o700 || len(kept) != 2 {
		t.Errorf("%d files are kept, %v", len(kept), err)
	}

	// The certificate is kept: a restart asks for none.
	before := strings.Count(read(t, pebble), "/finalize-order/")
	certified(append(env, "FERRY_ADDR="+freeAddr(t), "FERRY_METRICS_ADDR=")...)
	if after := strings.Count(read(t, pebble), "/finalize-order/"); before == 0 || after != before {
		t.Errorf("%d orders before the second start, %d after", before, after)
	}
}
