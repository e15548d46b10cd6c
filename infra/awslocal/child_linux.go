package main

import "syscall"

// childAttr keeps a terminal's Ctrl-C from a server, which is stopped after
// the command has ended, and ends it when this process is killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
