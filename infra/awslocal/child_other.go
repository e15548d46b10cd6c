//go:build !linux

package main

import "syscall"

// childAttr does nothing here: this system cannot end a server with its parent.
func childAttr() *syscall.SysProcAttr { return nil }
