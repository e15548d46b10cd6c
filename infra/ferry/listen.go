package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// listeners are the addresses of ferry serve; metrics and plain may be nil.
type listeners struct {
	main, metrics, plain net.Listener
	tls                  *tls.Config       // of main; nil is plain HTTP
	manager              *autocert.Manager // of the certificates for --tls-domain
}

// listen opens all addresses, so that a wrong one is reported before anything else happens.
func (c serveCommand) listen(log *slog.Logger) (l *listeners, err error) {
	l = &listeners{}
	if err := c.secure(l, log); err != nil {
		return nil, &coded{exitSettings, err}
	}
	for _, one := range []struct {
		to         *net.Listener
		addr, flag string
	}{
		{&l.main, c.Where.listenOn(), "--addr or FERRY_ADDR"},
		{&l.metrics, c.MetricsAddr, "--metrics-addr or FERRY_METRICS_ADDR"},
		{&l.plain, c.ACME.HTTPAddr, "--http-addr or FERRY_HTTP_ADDR"},
	} {
		if one.addr == "" {
			continue
		}
		if *one.to, err = listen(one.addr, one.flag); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *listeners) close() {
	for _, one := range []net.Listener{l.main, l.metrics, l.plain} {
		if one != nil {
			one.Close()
		}
	}
}

func listen(addr, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &coded{exitPort, fmt.Errorf("%s is in use by another program; choose another address with %s", addr, flag)}
	case errors.As(err, new(*net.AddrError)), errors.As(err, new(*net.DNSError)):
		return nil, &coded{exitSettings, fmt.Errorf("%s is not an address to listen on, such as 127.0.0.1:8080: %w", addr, errors.Unwrap(err))}
	case err != nil:
		return nil, &coded{exitPort, fmt.Errorf("cannot listen on %s: %w", addr, err)}
	}
	return l, nil
}

// serve answers requests until ctx ends, then lets running ones finish.
func (c serveCommand) serve(ctx context.Context, l *listeners, s *local.Service, p *api.Ports, m *local.Metrics) error {
	handler := below(p.PublicURL, s.Handler())
	if c.TrustProxy {
		handler = forwarded(handler)
	}
	background, stop := context.WithCancel(context.Background())
	var finished sync.WaitGroup
	defer finished.Wait()
	defer stop()
	if !c.inCloud() { // there the stack's own functions do it
		finished.Go(func() { s.Run(background) })
	}

	failed := make(chan error, 3)
	begin := func(l net.Listener, h http.Handler) *http.Server {
		server := &http.Server{
			Handler:           h,
			ReadHeaderTimeout: 20 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn),
		}
		go func() { failed <- server.Serve(l) }()
		return server
	}
	var front net.Listener = patientListener{l.main, patience / tries, tries}
	if l.tls != nil {
		front = tls.NewListener(front, l.tls)
	}
	server := begin(front, handler)
	go warm(l.manager, c.Where.Domains, p.Log)
	if l.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", m.Handler())
		defer begin(l.metrics, mux).Close()
	}
	if l.plain != nil {
		defer begin(l.plain, l.manager.HTTPHandler(nil)).Close()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	p.Log.Info("stopping", "drain", drain.String())
	end, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		server.Close()
		return fmt.Errorf("some requests took longer than %s and were cut off", drain)
	}
	return nil
}

// forwarded takes the caller's address from the proxy in front. Only the last
// entry of X-Forwarded-For is the proxy's own; anyone can write the others.
func forwarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
		addr := strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
		if net.ParseIP(addr) != nil {
			r.RemoteAddr = net.JoinHostPort(addr, "0")
		}
		next.ServeHTTP(w, r)
	})
}

// below lets next answer under the public address's path too, so that a proxy in front
// need not rewrite paths. The path without it works as before.
func below(publicURL string, next http.Handler) http.Handler {
	u, err := url.Parse(publicURL)
	if err != nil {
		return next
	}
	prefix := strings.TrimSuffix(u.Path, api.Prefix)
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if prefix != "" && strings.HasPrefix(r.URL.Path, prefix+"/") {
			stripped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
