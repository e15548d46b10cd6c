package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

const serveHelp = `Each setting NAME of the environment can also be in a file that the variable NAME_FILE names.

With --tls-domain it listens on :443 by default, and gets a certificate from Let's Encrypt, whose terms you accept; port 443 of
the domain must lead here. With --tls-cert and --tls-key it uses your files, and reads them again when they change.

`

// acmeFlags say who issues the certificates for --tls-domain.
type acmeFlags struct {
	URL      string `name:"acme-url" env:"FERRY_ACME_URL" placeholder:"URL" help:"Directory of another ACME service."`
	CA       string `name:"acme-ca" env:"FERRY_ACME_CA" type:"path" placeholder:"FILE" help:"PEM file to trust it by."`
	HTTPAddr string `name:"http-addr" env:"FERRY_HTTP_ADDR" placeholder:"HOST:PORT" help:"Redirect from here to https."`
}

// secure makes the TLS settings. HTTP/2 is not offered: a large file would share its
// connection, and what ends slow clients works for each connection.
func (c serveCommand) secure(l *listeners, log *slog.Logger) error {
	l.manager = &autocert.Manager{}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	switch {
	case len(c.Where.Domains) > 0 && c.Where.Cert != "":
		return errors.New("choose either --tls-domain or --tls-cert")
	case (c.Where.Cert == "") != (c.Where.Key == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case c.ACME.HTTPAddr != "" && !c.Where.secure():
		return errors.New("--http-addr needs --tls-domain or --tls-cert to redirect to")
	case !c.Where.secure():
		return nil
	case c.Where.Cert != "":
		files := &certificate{cert: c.Where.Cert, key: c.Where.Key, log: log}
		if _, err := files.get(nil); err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
		config.GetCertificate = files.get
	default:
		var err error
		if l.manager, err = c.manager(); err != nil {
			return err
		}
		config.GetCertificate = l.manager.GetCertificate
		config.NextProtos = append(config.NextProtos, acme.ALPNProto)
	}
	l.tls = config
	return nil
}

// manager gets certificates by ACME, and keeps them and the account's key in the data
// directory, in files that only their owner can read.
func (c serveCommand) manager() (*autocert.Manager, error) {
	client := &acme.Client{DirectoryURL: cmp.Or(c.ACME.URL, autocert.DefaultACMEDirectory), UserAgent: "ferry"}
	if c.ACME.CA != "" {
		text, err := os.ReadFile(c.ACME.CA)
		if err != nil {
			return nil, fmt.Errorf("--acme-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--acme-ca: %s has no certificate", c.ACME.CA)
		}
		client.HTTPClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	}
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, Client: client,
		HostPolicy: autocert.HostWhitelist(c.Where.Domains...), Cache: autocert.DirCache(filepath.Join(c.Data, "acme")),
	}, nil
}

// warm gets the certificates at the start, as the first request would: so the log shows
// whether that works. After a failure the next request tries again.
func warm(m *autocert.Manager, domains []string, log *slog.Logger) {
	for _, d := range domains {
		_, err := m.GetCertificate(&tls.ClientHelloInfo{
			ServerName: d, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			SupportedCurves: []tls.CurveID{tls.CurveP256}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		})
		if err != nil {
			log.Error("there is no certificate yet", "domain", d, "error", err.Error())
			continue
		}
		log.Info("the certificate is ready", "domain", d)
	}
}

// certificate is a pair of files that is read again when one of them changes. It is safe
// for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu    sync.Mutex
	state string // of the files when they were read
	pair  *tls.Certificate
}

// get returns the certificate. Files that cannot be read, such as those of a renewal that
// is half done, leave the last one in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := fileState(c.cert) + fileState(c.key)
	if state == c.state {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil && c.pair == nil {
		return nil, err
	}
	c.state = state
	if err != nil {
		c.log.Error("the changed certificate cannot be used; the last one stays", "file", c.cert, "error", err.Error())
		return c.pair, nil
	}
	c.pair = &pair
	return c.pair, nil
}

// fileState changes when a file does.
func fileState(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
}
