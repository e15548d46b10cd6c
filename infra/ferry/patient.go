package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// tries is how often in a row a client may take nothing before its connection is
// closed. Each try begins with a write, which fills whatever room there is. Waiting
// alone would report room only when there is a lot of it, which is too late for a
// slow client with a large buffer on the way. (Linux's TCP_USER_TIMEOUT cuts off
// clients that read all the time, but slowly.)
const tries = 6

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

// ReadFrom lets the kernel send a file that net/http passes on.
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

// insist writes until all is written or the client stops reading.
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

// patience is how long a client may pause in the middle of an answer.
const patience = time.Minute
