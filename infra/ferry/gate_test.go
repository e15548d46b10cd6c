package main

import (
	"io"
	"net"
	"sync/atomic"
)

// gate is a proxy whose address stays while the servers behind it come and go. It
// counts the bytes sent to them, and is safe for concurrent use.
type gate struct {
	listener net.Listener
	target   atomic.Value // string
	in       atomic.Int64
}

// openGate listens on a free port of the loopback address. Connections are closed
// at once until Lead has been called.
func openGate() (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: l}
	g.target.Store("")
	go g.accept()
	return g, nil
}

// Addr returns the gate's own address.
func (g *gate) Addr() string { return g.listener.Addr().String() }

// Lead sends new connections to the server at addr.
func (g *gate) Lead(addr string) { g.target.Store(addr) }

// In returns how many bytes were sent to servers.
func (g *gate) In() int64 { return g.in.Load() }

// Close stops accepting connections.
func (g *gate) Close() error { return g.listener.Close() }

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		go g.pass(conn)
	}
}

func (g *gate) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", g.target.Load().(string))
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(conn, server)
		conn.Close()
	}()
	_, _ = io.Copy(counted{server, &g.in}, conn)
}

type counted struct {
	io.Writer
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}
