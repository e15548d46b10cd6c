package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/envelope"
	"ferry/shared/wire"
)

// where says at which address the service answers, and with which certificate.
type where struct {
	Addr    string   `env:"FERRY_ADDR" placeholder:"HOST:PORT" help:"Address to listen on (default 127.0.0.1:8080)."`
	Domains []string `name:"tls-domain" env:"FERRY_TLS_DOMAIN" placeholder:"DOMAIN" help:"Get a certificate for it."`
	Cert    string   `name:"tls-cert" env:"FERRY_TLS_CERT" type:"path" placeholder:"FILE" help:"Certificate, in PEM."`
	Key     string   `name:"tls-key" env:"FERRY_TLS_KEY" type:"path" placeholder:"FILE" help:"Its private key."`
}

// secure reports whether the service speaks https itself.
func (w where) secure() bool { return len(w.Domains) > 0 || w.Cert != "" }

func (w where) listenOn() string {
	if w.Addr == "" && len(w.Domains) > 0 {
		return ":443"
	}
	return cmp.Or(w.Addr, "127.0.0.1:8080")
}

// publicURL returns the address of a service that listens on addr. It refuses an address that no
// link can use.
func (w where) publicURL(addr net.Addr) (string, error) {
	host, port, _ := net.SplitHostPort(addr.String())
	switch {
	case len(w.Domains) > 0:
		host = w.Domains[0]
	case net.ParseIP(host).IsUnspecified():
		return "", cli.Fail(
			cli.ExitSettings,
			"%s means all addresses of this machine, but a link needs a single one: "+
				"use --tls-domain, or set the address of the proxy in front or of this machine, such as FERRY_PUBLIC_URL=%s",
			w.listenOn(),
			w.url(ownHost(), port),
		)
	}
	return w.url(host, port), nil
}

func (w where) url(host, port string) string {
	addr := net.JoinHostPort(host, port)
	if w.secure() {
		return "https://" + strings.TrimSuffix(addr, ":443") + wire.Prefix
	}
	return "http://" + addr + wire.Prefix
}

// ownHost returns an address at which others may reach this machine, or else its name.
func ownHost() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	host, _ := os.Hostname()
	return host
}

type Health struct {
	Where where  `embed:""`
	URL   string `arg:"" optional:"" help:"Address of the service (default the one that runs here with these settings)."`
}

func (c Health) Run(ctx context.Context, out cli.Console) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	config := &tls.Config{}
	if c.URL == "" {
		host, port, _ := net.SplitHostPort(c.Where.listenOn())
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = "localhost"
		}
		c.URL = c.Where.url(host, port)
		config.InsecureSkipVerify = true // the certificate is for a name other than this machine's own
		if len(c.Where.Domains) > 0 {
			config.ServerName = c.Where.Domains[0]
		}
	}
	own := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	cl, err := client.New(client.Options{URL: c.URL, HTTP: own})
	if err != nil {
		return cli.WithCode(cli.ExitOther, err)
	}
	if err := cl.Health(ctx); err != nil {
		return cli.Fail(cli.ExitOther, "%s does not work: %w", cl.URL(), err)
	}
	out.Print("%s works\n", cl.URL())
	return nil
}

// listeners are the addresses of ferry serve; metrics and plain may be nil.
type listeners struct {
	main, metrics, plain net.Listener
	tls                  *tls.Config       // of main; nil means plain HTTP
	manager              *autocert.Manager // of the certificates for --tls-domain
	proxy                envelope.Proxy    // in front of main
}

// listen opens all addresses, so that a wrong one is reported before anything else happens. They
// are closed when the process ends.
func (c Command) listen(log *slog.Logger) (l *listeners, err error) {
	l = &listeners{}
	l.proxy, err = c.proxy()
	if err = errors.Join(err, c.secure(l, log)); err != nil {
		return nil, cli.WithCode(cli.ExitSettings, err)
	}
	for _, one := range []struct {
		to         *net.Listener
		addr, flag string
	}{
		{&l.main, c.Where.listenOn(), "--addr or FERRY_ADDR"},
		{&l.metrics, c.MetricsAddr, "--metrics-addr or FERRY_METRICS_ADDR"},
		{&l.plain, c.HTTPAddr, "--http-addr or FERRY_HTTP_ADDR"},
	} {
		if one.addr == "" {
			continue
		}
		*one.to, err = net.Listen("tcp", one.addr)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, cli.Fail(
				cli.ExitPort,
				"%s is in use by another program; choose another address with %s",
				one.addr,
				one.flag,
			)
		case errors.Is(err, syscall.EACCES):
			return nil, cli.Fail(
				cli.ExitPort,
				"cannot listen on %s: permission denied; for a port below 1024 put "+
					"AmbientCapabilities=CAP_NET_BIND_SERVICE into the systemd unit or run setcap cap_net_bind_service=+ep FERRY, "+
					"or choose a port of 1024 or above with %s, behind a proxy",
				one.addr,
				one.flag,
			)
		case errors.As(err, new(*net.AddrError)), errors.As(err, new(*net.DNSError)):
			return nil, cli.Fail(
				cli.ExitSettings,
				"%s is not an address to listen on, such as 127.0.0.1:8080: %w",
				one.addr,
				errors.Unwrap(err),
			)
		case err != nil:
			return nil, cli.Fail(cli.ExitPort, "cannot listen on %s: %w", one.addr, err)
		}
	}
	return l, nil
}

// serve answers requests until ctx ends, then lets running ones finish.
func (c Command) serve(
	ctx context.Context,
	l *listeners,
	s *local.Service,
	m *local.Metrics,
) error {
	handler := l.proxy.Handler(below(s.PublicURL, s.Handler()))
	background, stop := context.WithCancel(context.Background())
	var finished sync.WaitGroup
	defer finished.Wait()
	defer stop()
	if !c.InCloud() { // in the cloud the stack's own functions do this
		finished.Go(func() { s.Run(background) })
	} else {
		defer s.EndMoves()
	}
	defer s.Links().Flush(background) // the last counts of downloads

	failed := make(chan error, 3)
	begin := func(l net.Listener, h http.Handler) *http.Server {
		server := &http.Server{
			Handler:                      bounded(h, 30*time.Second),
			ReadHeaderTimeout:            20 * time.Second,
			IdleTimeout:                  2 * time.Minute,
			MaxHeaderBytes:               64 << 10,
			ErrorLog:                     slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
			DisableGeneralOptionsHandler: true, // that handler is not bounded
		}
		go func() { failed <- server.Serve(l) }()
		return server
	}
	var front net.Listener = patientListener{l.main, patience / tries, tries}
	if l.tls != nil {
		front = tls.NewListener(front, l.tls)
	}
	server := begin(front, handler)
	go warm(l.manager, c.Where.Domains, s.Log)
	if l.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", m.Handler())
		defer begin(l.metrics, mux).Close()
	}
	if l.plain != nil {
		defer begin(l.plain, l.manager.HTTPHandler(redirect(s.PublicURL))).Close()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	s.Log.Info("stopping", "drain", drain.String())
	end, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		server.Close()
		return fmt.Errorf("some requests took longer than %s and were cut off", drain)
	}
	return nil
}

// bounded limits how long a request's body may take to arrive. A handler that reads the body sets
// its own deadlines. For one that does not, such as a preflight's, the server itself would wait forever.
func bounded(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		}
		next.ServeHTTP(w, r)
	})
}

// proxy returns the proxy in front, if any.
func (c Command) proxy() (envelope.Proxy, error) {
	p, err := envelope.ParseProxy(c.ClientHeader, c.ProxySecret)
	switch {
	case err != nil:
		return p, fmt.Errorf(
			"--client-header or FERRY_CLIENT_HEADER, with --proxy-secret or FERRY_PROXY_SECRET: %w", err,
		)
	case c.TrustProxy && c.ClientHeader != "":
		return p, errors.New("choose either --client-header or --trust-proxy")
	case c.TrustProxy:
		return envelope.LastForwarded(), nil
	}
	return p, nil
}

// below lets next answer under the public address's path too, so that a proxy in front need not
// rewrite paths. The path without this prefix still works.
func below(publicURL string, next http.Handler) http.Handler {
	u, _ := url.Parse(publicURL) // valid by now
	prefix := strings.TrimSuffix(u.Path, wire.Prefix)
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := next
		switch {
		case prefix == "":
		case strings.HasPrefix(r.URL.Path, prefix+"/"):
			h = stripped
		case r.URL.Path == prefix: // the addresses on its pages are relative
			h = http.RedirectHandler((&url.URL{Path: prefix + "/"}).String(), http.StatusFound)
		}
		h.ServeHTTP(w, r)
	})
}

// tries is how many times in a row a client may take nothing before its connection is closed. Each
// try begins with a write, which fills whatever room there is. Without one, the system reports room
// only when there is a lot of it: too late for a slow client with a large buffer in between.
// (Linux's TCP_USER_TIMEOUT also cuts off clients that never stop reading, but read slowly.)
const tries = 6

// patience is how long a client may pause in the middle of an answer.
const patience = time.Minute

// patientListener closes the connections of clients that stop reading. A client that
// reads anything may be as slow as it likes.
type patientListener struct {
	net.Listener
	try   time.Duration
	tries int
}

func (l patientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &patientConn{tcp, l}, err
	}
	return conn, err
}

// patientConn limits each pause of its client.
type patientConn struct {
	*net.TCPConn // its CloseWrite lets the HTTP server end an answer before the connection
	listener     patientListener
}

// Write implements net.Conn. It ends early if the client stops reading.
func (c *patientConn) Write(p []byte) (int, error) {
	done, err := c.patiently(func(done int64) (int64, error) {
		n, err := c.TCPConn.Write(p[done:])
		return int64(n), err
	})
	return int(done), err
}

// ReadFrom implements io.ReaderFrom. The kernel sends a file by itself, as patiently as a write.
func (c *patientConn) ReadFrom(r io.Reader) (int64, error) {
	limited, _ := r.(*io.LimitedReader)
	var f *os.File
	if limited != nil {
		f, _ = limited.R.(*os.File)
	}
	if f == nil {
		return io.Copy(struct{ io.Writer }{c}, r)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	done, err := c.patiently(func(done int64) (int64, error) {
		if _, err := f.Seek(at+done, io.SeekStart); err != nil {
			return 0, err
		}
		return c.TCPConn.ReadFrom(io.LimitReader(f, limited.N-done))
	})
	limited.N -= done
	return done, err
}

// patiently calls send, with how much was sent before, until it succeeds or fails for a reason
// other than its deadline, or the client stops reading.
func (c *patientConn) patiently(send func(done int64) (int64, error)) (done int64, err error) {
	for idle := 0; idle < c.listener.tries; {
		if err := c.SetWriteDeadline(time.Now().Add(c.listener.try)); err != nil {
			return done, err
		}
		n, err := send(done)
		done += n
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return done, err
		}
		if idle++; n > 0 {
			idle = 0
		}
	}
	_ = c.SetLinger(0) // or the system keeps unsent data for minutes
	return done, fmt.Errorf("the client took nothing for %s",
		time.Duration(c.listener.tries)*c.listener.try)
}
