//go:build !linux

package main

import "syscall"

// childAttr cannot end a server with this process here.
func childAttr() *syscall.SysProcAttr { return nil }
