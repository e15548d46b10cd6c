package main

import (
	"cmp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience makes the kernel close a listener's connections if a client takes
// nothing of what is sent to it for that long. A client that takes something may be
// as slow as it likes.
func patience(most time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most.Milliseconds()))
		})
		return cmp.Or(controlErr, err)
	}
}
