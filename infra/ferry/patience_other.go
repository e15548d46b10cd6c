//go:build !linux

package main

import (
	"syscall"
	"time"
)

// patience is for Linux alone: elsewhere the kernel decides when to give up.
func patience(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
