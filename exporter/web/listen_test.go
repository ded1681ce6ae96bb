package web

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The address in the log is one that a browser on this machine can open.
func TestAddress(t *testing.T) {
	for at, want := range map[string]string{
		"tcp 127.0.0.1:0": `^http://127\.0\.0\.1:[0-9]+/$`,
		"tcp :0":          `^http://localhost:[0-9]+/$`,
		"tcp4 0.0.0.0:0":  `^http://localhost:[0-9]+/$`,
		"tls :0":          `^https://localhost:[0-9]+/$`,
		"unix":            `^unix:/.*/socket$`,
	} {
		network, where, _ := strings.Cut(at, " ")
		var l net.Listener
		var err error
		switch network {
		case "unix":
			l, err = net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
		case "tls":
			if l, err = net.Listen("tcp", where); err == nil {
				l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13})
			}
		default:
			l, err = net.Listen(network, where)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := address(l); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
		l.Close() //nolint:errcheck // a listener of the test
	}
}

// A file that the toolkit cannot use is refused by its name.
func TestCheckConfig(t *testing.T) {
	if err := CheckConfig(""); err != nil {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{
		"basic_auth_users: {ada: $2a$04$8aMBZYQ7Lz12DQMDTNpCu.JWDBL6jc84rr3Im7tvm0PHBVpUTzS3i}": "",
		"":                                      "",
		"basic_auth_users: {ada: short}":        "hashedSecret too short",
		"tls_server_config: {cert_file: x}":     "key",
		"tls_server: {}":                        "field tls_server not found",
		"http_server_config: {headers: {a: b}}": `HTTP header "a" can not be configured`,
	} {
		path := filepath.Join(t.TempDir(), "web.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := CheckConfig(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v, want %q of %s", text, err, want, path)
		}
	}
	pipe := filepath.Join(t.TempDir(), "web.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckConfig(pipe); err == nil || !strings.Contains(err.Error(), pipe) || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("a pipe: %v", err)
	}
	if err := CheckConfig("/nope/web.yaml"); err == nil || !strings.Contains(err.Error(), "/nope/web.yaml") {
		t.Errorf("no such file: %v", err)
	}
}
