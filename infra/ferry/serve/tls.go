package serve

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/idna"
)

// secure makes the TLS settings. HTTP/2 is not offered: a large file would share its
// connection, and slow clients are cut off per connection.
func (c Command) secure(l *listeners, log *slog.Logger) error {
	l.manager = &autocert.Manager{}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	switch {
	case len(c.Where.Domains) > 0 && c.Where.Cert != "":
		return errors.New("choose either --tls-domain or --tls-cert")
	case (c.Where.Cert == "") != (c.Where.Key == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case c.HTTPAddr != "" && !c.Where.secure():
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
		for i, d := range c.Where.Domains {
			ascii, err := idna.Lookup.ToASCII(d)
			if err != nil || !strings.Contains(d, ".") || net.ParseIP(d) != nil {
				return fmt.Errorf(
					"--tls-domain or FERRY_TLS_DOMAIN: %q is not a domain, such as files.example.com", d,
				)
			}
			c.Where.Domains[i] = ascii
		}
		l.manager = &autocert.Manager{
			Client: &acme.Client{
				DirectoryURL: cmp.Or(c.ACMEURL, autocert.DefaultACMEDirectory),
				UserAgent:    "ferry",
			},
			Prompt:     autocert.AcceptTOS,
			HostPolicy: autocert.HostWhitelist(c.Where.Domains...),
			// The account's key is stored there too, in files that only their owner can read.
			Cache: autocert.DirCache(filepath.Join(c.Data, "acme")),
		}
		config.GetCertificate = l.manager.GetCertificate
		config.NextProtos = append(config.NextProtos, acme.ALPNProto)
	}
	l.tls = config
	return nil
}

// redirect sends plain HTTP to the port of the public URL.
func redirect(publicURL string) http.Handler {
	public, _ := url.Parse(publicURL) // valid by now
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "Use HTTPS", http.StatusBadRequest)
			return
		}
		host := net.JoinHostPort(
			(&url.URL{Host: r.Host}).Hostname(),
			cmp.Or(public.Port(), "443"),
		)
		http.Redirect(
			w,
			r,
			"https://"+strings.TrimSuffix(host, ":443")+r.URL.RequestURI(),
			http.StatusFound,
		)
	})
}

// warm gets the certificates at the start, as the first request would, so that the log shows
// whether this works. After a failure the next request tries again.
func warm(m *autocert.Manager, domains []string, log *slog.Logger) {
	for _, d := range domains {
		_, err := m.GetCertificate(&tls.ClientHelloInfo{
			ServerName:       d,
			CipherSuites:     []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			SupportedCurves:  []tls.CurveID{tls.CurveP256},
			SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		})
		if err != nil {
			log.Error("there is no certificate yet", "domain", d, "error", err.Error())
		} else {
			log.Info("the certificate is ready", "domain", d)
		}
	}
}

// certificate is a pair of files that is reread when one of them changes. It is safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu    sync.Mutex
	state [sha256.Size]byte // of the files when they were read
	pair  *tls.Certificate
}

// get returns the certificate. If the files cannot be read, as in the middle of a
// renewal, the last one stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, _ := os.ReadFile(c.cert) // if it cannot be read, loading it says why
	key, _ := os.ReadFile(c.key)
	if state := sha256.Sum256(append(cert, key...)); state != c.state || c.pair == nil {
		c.state = state
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		switch {
		case err == nil:
			c.pair = &pair
		case c.pair == nil:
			return nil, err
		default:
			c.log.Error("the changed certificate cannot be used; the last one stays",
				"file", c.cert, "error", err.Error())
		}
	}
	return c.pair, nil
}
