package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// tries is how often in a row a client may take nothing before its connection is
// closed. Each try begins with a write, which sends what there is room for:
// just waiting would report room only when there is much of it, too late for a
// slow client with a large buffer on the way.
const tries = 6

// patientListener closes connections whose client takes nothing of what is sent
// to it. A client that takes something may be as slow as it likes.
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

type patientConn struct {
	*net.TCPConn
	listener patientListener
}

// Write implements net.Conn.
func (c *patientConn) Write(p []byte) (int, error) {
	done := 0
	err := c.insist(func() (int64, error) {
		n, err := c.TCPConn.Write(p[done:])
		done += n
		return int64(n), err
	})
	return done, err
}

// ReadFrom lets the kernel send a file, which is what net/http hands on.
func (c *patientConn) ReadFrom(r io.Reader) (int64, error) {
	var file *os.File
	part, _ := r.(*io.LimitedReader)
	if part != nil {
		file, _ = part.R.(*os.File)
	}
	start, err := file.Seek(0, io.SeekCurrent) // which also fails without a file
	if err != nil {
		return io.Copy(writerOnly{c}, r)
	}
	sent, size := int64(0), part.N
	err = c.insist(func() (int64, error) {
		n, err := c.TCPConn.ReadFrom(part)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// Where the kernel cannot send it, more may have been read than sent.
			part.N = size - sent
			if _, seek := file.Seek(start+sent, io.SeekStart); seek != nil {
				return n, seek
			}
		}
		return n, err
	})
	return sent, err
}

// writerOnly hides ReadFrom from io.Copy.
type writerOnly struct{ io.Writer }

// insist tries to write until all is written or the client takes nothing.
func (c *patientConn) insist(write func() (int64, error)) error {
	for idle := 0; idle < c.listener.tries; {
		if err := c.SetWriteDeadline(time.Now().Add(c.listener.try)); err != nil {
			return err
		}
		n, err := write()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if idle++; n > 0 {
			idle = 0
		}
	}
	_ = c.SetLinger(0) // or the system keeps what it has for minutes
	return fmt.Errorf("the client took nothing for %s", time.Duration(c.listener.tries)*c.listener.try)
}

// patience is how long a client may pause in the middle of a body that it sends
// or gets.
const patience = time.Minute

// patient ends requests whose body stops coming. A body that keeps coming may
// take as long as it likes.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody && r.ContentLength != 0 {
			// A copy: if the body of the server's own request is replaced, it
			// reads from it before it answers, even if the client waits.
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
		all := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
		addr := strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
		if net.ParseIP(addr) != nil {
			r.RemoteAddr = net.JoinHostPort(addr, "0")
		}
		next.ServeHTTP(w, r)
	})
}
