package web

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// maxConfig is far above any sensible file of the toolkit, in bytes.
const maxConfig = 1 << 20

// CheckConfig reads the exporter toolkit's file as Serve will, and returns what is wrong with it.
// Without a path nothing is.
func CheckConfig(path string) error {
	if path == "" {
		return nil
	}
	raw, err := safefile.Read(context.Background(), path, maxConfig) // the toolkit would wait for a pipe
	if err != nil {
		return err
	}
	err = toolkit.Validate(path)
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // faults of YAML come on several lines
	if user := badPassword(raw); user != "" {              // the toolkit does not name the user
		text = fmt.Sprintf("password of user %q: %s", user, text)
	}
	return fmt.Errorf("%s: %s", path, text)
}

// badPassword returns the first user of the file whose password is not hashed by bcrypt; empty: all are.
func badPassword(raw []byte) string {
	var c struct {
		Users map[string]string `yaml:"basic_auth_users"`
	}
	if yaml.Unmarshal(raw, &c) != nil {
		return ""
	}
	for _, user := range slices.Sorted(maps.Keys(c.Users)) {
		if _, err := bcrypt.Cost([]byte(c.Users[user])); err != nil {
			return user
		}
	}
	return ""
}

// address is where a browser on this machine finds the server, or the address where a browser
// cannot go.
func address(l net.Listener) string {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return l.Addr().Network() + ":" + l.Addr().String()
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(at.IP.String(), strconv.Itoa(at.Port)), Path: "/"}
	if at.IP.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", strconv.Itoa(at.Port))
	}
	if _, plain := l.(*net.TCPListener); !plain { // the toolkit has put TLS around it
		u.Scheme = "https"
	}
	return u.String()
}
