// Package process finds out whose work an operating system process does.
package process
