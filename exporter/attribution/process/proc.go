package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const maxRead = 64 << 10 // bytes, far above what the files of a process hold

// stat reads when a process began, and its command.
func (l *Locator) stat(pid int64) (start uint64, command string, err error) {
	text, err := l.read(pid, "stat")
	if err != nil {
		return 0, "", err
	}
	if start, command, err = parseStat(text); err != nil {
		return 0, "", fmt.Errorf("process %d: stat: %w: %w", pid, ErrMalformed, err)
	}
	return start, command, nil
}

// parseStat takes the file apart: the command stands in parentheses and may hold any character, so the
// last one ends it.
func parseStat(text []byte) (start uint64, command string, err error) {
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return 0, "", errors.New("no command")
	}
	fields := strings.Fields(string(text[to+1:]))
	const startTime = 22 - 3 // of proc(5), counted from the state, which is the third
	if len(fields) <= startTime {
		return 0, "", fmt.Errorf("%d fields", len(fields)+2)
	}
	if start, err = strconv.ParseUint(fields[startTime], 10, 64); err != nil {
		return 0, "", fmt.Errorf("start time: %w", err)
	}
	return start, printable(string(text[from+1 : to])), nil
}

// login is the user in whose slice a process is, else whose it is: sudo in a session is the work of who
// sits there. Root's own are nobody's.
func (l *Locator) login(pid int64, user string, now time.Time) string {
	if user == "" {
		user = l.uid(pid)
	}
	if user == "" || user == "0" {
		return ""
	}
	if name := l.names.of(l.Proc, user, now); name != "" {
		return name
	}
	return user
}

// uid is the number of the user who started a process, empty when it can not be read.
func (l *Locator) uid(pid int64) string {
	text, err := l.read(pid, "status")
	if err != nil {
		return ""
	}
	return parseUID(string(text))
}

func parseUID(status string) string {
	fields := uids(status)
	if len(fields) != 4 || !isNumber(fields[0]) {
		return ""
	}
	return fields[0]
}

// uids returns the real, effective, saved and file system's user IDs of a process.
func uids(status string) []string {
	_, rest, _ := strings.Cut("\n"+status, "\nUid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}

// printable has a ? for what would disturb a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func (l *Locator) open(pid int64, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(l.Proc, strconv.FormatInt(pid, 10), name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(filepath.Join(l.Proc, "1")); err != nil { // which every machine has
			return nil, fmt.Errorf("process %d: %w", pid, ErrHidden)
		}
		return nil, gone(pid)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("process %d: %w: %w", pid, ErrDenied, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, fmt.Errorf("process %d: %w: %w", pid, ErrFiles, err)
	case err != nil: // it ended while it was opened
		return nil, fmt.Errorf("process %d: %w: %w", pid, ErrGone, err)
	}
	return f, nil
}

func (l *Locator) read(pid int64, name string) ([]byte, error) {
	f, err := l.open(pid, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil { // it ended while it was read
		return nil, fmt.Errorf("process %d: %w: %w", pid, ErrGone, err)
	}
	return text, nil
}

func gone(pid int64) error { return fmt.Errorf("process %d: %w", pid, ErrGone) }
