package main

import "syscall"

// apart has a program not hear the terminal's Ctrl-C, and end when the demo does, even when that is killed.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
