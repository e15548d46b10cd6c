package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// shape passes connections on to an address. In each direction all connections together pass rate
// bytes a second.
func shape(l net.Listener, to string, rate int64) {
	var up, down bucket
	pass := func(to, from net.Conn, b *bucket) {
		for n, err := int64(0), error(nil); err == nil; b.pass(n, rate) {
			n, err = io.CopyN(to, from, 64<<10) // done by the kernel
		}
		_ = to.(*net.TCPConn).CloseWrite()
	}
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server := must(net.Dial("tcp", to))
		go pass(server, client, &up)
		go pass(client, server, &down)
	}
}

// bucket limits what a line may send at once.
type bucket struct {
	mu   sync.Mutex
	next time.Time // when everything has been sent, but no earlier than burst before now
}

const burst = 5 * time.Millisecond

// pass waits until a line has sent n bytes.
func (b *bucket) pass(n, rate int64) {
	b.mu.Lock()
	now := time.Now()
	if early := now.Add(-burst); b.next.Before(early) {
		b.next = early
	}
	b.next = b.next.Add(time.Duration(n) * time.Second / time.Duration(rate))
	wait := b.next.Sub(now)
	b.mu.Unlock()
	time.Sleep(wait)
}
