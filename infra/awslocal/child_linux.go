package main

import "syscall"

// childAttr keeps Ctrl-C from a server, which must outlive the command, and ends the server when
// this process is killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
