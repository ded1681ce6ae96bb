//go:build !linux

package diagnosis

import "os"

// access returns why a file is not there. Whether it may be opened is not known here.
func access(path string) error {
	_, err := os.Stat(path)
	return err
}
