package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// tries is how often a client may take nothing within a try before its
// connection ends. Each try begins with a call to the system, which takes what
// there is room for; waiting alone would tell of room only when there is much,
// too late for a slow client with a large buffer on its way.
const tries = 6

// patientListener ends connections whose client takes nothing of what is sent
// to it, however slow one that takes something may be.
type patientListener struct {
	net.Listener
	try   time.Duration
	tries int
}

func (l patientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &patientConn{TCPConn: tcp, try: l.try, tries: l.tries}, err
	}
	return conn, err
}

type patientConn struct {
	*net.TCPConn
	try   time.Duration
	tries int
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
	part, _ := r.(*io.LimitedReader)
	if part == nil {
		return io.Copy(writerOnly{c}, r)
	}
	file, ok := part.R.(*os.File)
	if !ok {
		return io.Copy(writerOnly{c}, r)
	}
	start, err := file.Seek(0, io.SeekCurrent)
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
	for idle := 0; idle < c.tries; {
		if err := c.SetWriteDeadline(time.Now().Add(c.try)); err != nil {
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
	return fmt.Errorf("the client took nothing for %s", time.Duration(c.tries)*c.try)
}
