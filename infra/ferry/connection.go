package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience is how long a client may pause in the middle of a body, be it one
// that it sends or one that it gets.
const patience = time.Minute

// patient ends requests whose body stops coming, however long a body that
// keeps coming may take.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody && r.ContentLength != 0 {
			// A copy: a server that finds its own request's body replaced
			// reads from it before it answers, also where the client waits.
			r = r.WithContext(r.Context())
			r.Body = &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
		}
		next.ServeHTTP(w, r)
	})
}

type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	moved   time.Time // when the deadline was last moved
}

func (b *patientBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.moved) > patience/10 {
		b.moved = now
		_ = b.control.SetReadDeadline(now.Add(patience)) // not every connection has one
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// forwarded takes the caller's address from the proxy in front. Only the last
// entry of X-Forwarded-For is the proxy's own; the others anyone can write.
func forwarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := r.Header.Values("X-Forwarded-For")
		if len(all) > 0 {
			last := all[len(all)-1]
			addr := strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			if net.ParseIP(addr) != nil {
				r.RemoteAddr = net.JoinHostPort(addr, "0")
			}
		}
		next.ServeHTTP(w, r)
	})
}
