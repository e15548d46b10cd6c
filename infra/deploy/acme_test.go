package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// pair writes a certificate for 127.0.0.1 and files.example.com, and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"files.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	dir := t.TempDir()
	return write(t, dir+"/cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
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

// names is a DNS server, for TCP, that answers all questions for an IPv4 address with
// 127.0.0.1, and other questions with nothing. It returns where it listens.
func names(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go resolve(conn)
		}
	}()
	return l.Addr().String()
}

// resolve answers the questions of a connection. A length precedes each message.
func resolve(conn net.Conn) {
	defer conn.Close()
	for {
		var size uint16
		var m dnsmessage.Message
		if binary.Read(conn, binary.BigEndian, &size) != nil {
			return
		}
		question := make([]byte, size)
		if _, err := io.ReadFull(conn, question); err != nil || m.Unpack(question) != nil || len(m.Questions) != 1 {
			return
		}
		q := m.Questions[0]
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
		if q.Type == dnsmessage.TypeA {
			answer.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		packed, err := answer.AppendPack([]byte{0, 0})
		if err != nil {
			return
		}
		binary.BigEndian.PutUint16(packed, uint16(len(packed)-2))
		if _, err := conn.Write(packed); err != nil {
			return
		}
	}
}

func TestServeGetsItsCertificateByACME(t *testing.T) {
	t.Parallel()
	dir, addr, directory, management := t.TempDir(), freeAddr(t), freeAddr(t), freeAddr(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "pebble", "-o", dir+"/pebble", "github.com/letsencrypt/pebble/v2/cmd/pebble")
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
	pebble := start(t, []string{"PEBBLE_VA_NOSLEEP=1"}, dir+"/pebble", "-strict", "-config", write(t, dir+"/config.json", string(config)), "-dnsserver", names(t))
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
		"FERRY_TLS_DOMAIN=files.example.com", "FERRY_ADDR=" + addr, "FERRY_ACME_URL=https://" + directory + "/dir", "SSL_CERT_FILE=" + cert,
		"FERRY_DATA=" + data, "FERRY_METRICS_ADDR=" + freeAddr(t),
	}
	out := start(t, env, program(t), "serve")
	until(t, "a certificate", func() bool { return strings.Contains(read(t, out), "the certificate is ready") }, out, pebble)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool(t, string(root)), ServerName: "files.example.com"},
	}}
	resp, err := client.Get("https://" + addr + "/v1/health")
	check(t, err)
	resp.Body.Close()
	issuer := resp.TLS.PeerCertificates[0].Issuer.CommonName
	if resp.StatusCode != 200 || !strings.Contains(issuer, "Pebble") || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s, issued by %s, %v", resp.Status, issuer, resp.Header)
	}
	if text := read(t, out); !strings.Contains(text, "https://files.example.com:"+port+"/v1") || strings.Contains(text, "password") {
		t.Errorf("it says %s", text)
	}
	if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool(t, string(root)), ServerName: "other.example.com"}); err == nil {
		t.Error("another name gets a certificate too")
	}
	check(t, run(t, env, "", "health"))
	kept := 0
	check(t, filepath.WalkDir(filepath.Join(data, "acme"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			kept++
			if info, _ := d.Info(); info.Mode() != 0o600 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
		}
		return err
	}))
	if info, err := os.Stat(filepath.Join(data, "acme")); err != nil || info.Mode().Perm() != 0o700 || kept != 2 {
		t.Errorf("%d files are kept, %v", kept, err)
	}

	// The certificate is kept: a restart asks for none.
	before := strings.Count(read(t, pebble), "/finalize-order/")
	again := append(env[:0:0], env...)
	again[1], again[5] = "FERRY_ADDR="+freeAddr(t), "FERRY_METRICS_ADDR="
	out = start(t, again, program(t), "serve")
	until(t, "the certificate of a second start", func() bool { return strings.Contains(read(t, out), "the certificate is ready") }, out)
	if after := strings.Count(read(t, pebble), "/finalize-order/"); before == 0 || after != before {
		t.Errorf("%d orders before the second start, %d after", before, after)
	}
}
