//go:build !linux

package main

import (
	"syscall"
	"time"
)

// patience does nothing here: the system decides when to give up on a client.
func patience(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
