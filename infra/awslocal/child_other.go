//go:build !linux

package main

import "syscall"

// childAttr has no way here to tie a server to the life of this process.
func childAttr() *syscall.SysProcAttr { return nil }
