//go:build !linux

package main

import "syscall"

// apart has no way to tie a program to the demo where there is no Linux.
func apart() *syscall.SysProcAttr { return nil }
