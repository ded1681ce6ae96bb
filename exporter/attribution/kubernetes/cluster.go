package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// Endpoint is a server that is asked over HTTPS.
type Endpoint struct {
	URL       string // https://10.0.0.7:10250
	TokenFile string // bearer token, read anew when it is rotated; default: the service account's
	CAFile    string // who signs the server's certificate; default: the service account's
	Insecure  bool   // the certificate is not checked: a kubelet's is often signed by itself
}

// serviceAccount is where a pod finds the token and the authority of its cluster.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// errOutside is the failure of asking the API server of a cluster this process does not run in.
var errOutside = errors.New("not in a pod: KUBERNETES_SERVICE_HOST is not set")

// config returns client-go's configuration for the endpoint. asked is called for each request, repeated ones
// included; it may be nil.
func (e Endpoint) config(asked func()) (*rest.Config, error) {
	if e.URL == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errOutside
		}
		e.URL = "https://" + net.JoinHostPort(host, port)
	}
	if strings.HasPrefix(e.URL, "https://") { // a token is not sent in the clear unless somebody wants it
		if e.TokenFile == "" {
			e.TokenFile = serviceAccount + "token"
		}
		if e.CAFile == "" {
			e.CAFile = serviceAccount + "ca.crt"
		}
	}
	if err := errors.Join(checkFile(e.TokenFile), checkFile(e.CAFile)); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	cfg := &rest.Config{
		Host: e.URL, BearerTokenFile: e.TokenFile, UserAgent: "gpumeter",
		TLSClientConfig: rest.TLSClientConfig{CAFile: e.CAFile, Insecure: e.Insecure},
		QPS:             -1, // what is asked has its own pace
		WarningHandler:  rest.NoWarnings{},
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return limited{next, asked} },
	}
	if e.Insecure {
		cfg.CAFile = ""
	}
	return cfg, nil
}

// mostSecret is the largest size of a token or of a file of certificates, in bytes.
const mostSecret = 1 << 20

// checkFile refuses a file that client-go, which reads it, would wait for: a pipe, a device, a disk that hangs.
// A file that does not exist is client-go's to report.
func checkFile(path string) error {
	if path == "" {
		return nil
	}
	if _, err := safefile.Read(context.Background(), path, mostSecret); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// cluster is the API server, reached when it is first needed.
type cluster struct {
	endpoint Endpoint
	node     string
}

// client returns what asks for metadata. asked is called for each request.
func (c *cluster) client(asked func()) (metadata.Interface, error) {
	cfg, err := c.endpoint.config(asked)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return m, nil
}

// httpClient returns what asks for anything else below the returned address. asked is called for each request.
func (e Endpoint) httpClient(asked func()) (*http.Client, string, error) {
	cfg, err := e.config(asked)
	if err != nil {
		return nil, "", err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes: %w", err)
	}
	return client, cfg.Host, nil
}

// limited reads no more of an answer than is sensible, and follows no redirect. A watch has no end, and no
// limit. It is below what adds the token.
type limited struct {
	next  http.RoundTripper
	asked func() // is called for each request; nil: it is not
}

// lost is a connection that ended or hangs, or a redirect. It says so in words of our own and has nothing behind it:
// what client-go knows for such a failure, it takes for the peaceful end of a watch, and for a reason to ask
// ten times again, once a second.
type lost struct {
	reason Reason
	said   string
}

func (l *lost) Error() string { return l.said }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.asked != nil {
		l.asked()
	}
	answer, err := l.next.RoundTrip(r)
	switch {
	case err == nil || r.Context().Err() != nil:
	case utilnet.IsTimeout(err):
		return nil, &lost{Hanging, "no connection in time"}
	case utilnet.IsProbableEOF(err):
		return nil, &lost{Unavailable, "the server ended the connection"}
	}
	if err == nil && answer.StatusCode/100 == 3 && answer.Header.Get("Location") != "" {
		answer.Body.Close() //nolint:errcheck // it is not read
		return nil, &lost{Broken, redirected(r.URL, answer)}
	}
	if err == nil && answer.Header.Get("Retry-After") != "" && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500) {
		answer.Body.Close()                                                                                  //nolint:errcheck // it is not read
		return nil, &refusal{r.URL.Redacted(), answer.StatusCode, pauseOf(answer.Header.Get("Retry-After"))} // client-go would ask again by itself, ten times
	}
	if err == nil && answer.Body != nil {
		err = limitBody(r, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// redirected describes a redirect. None is followed: HTTP clients would send the token to the other server,
// also in the clear.
func redirected(from *url.URL, answer *http.Response) string {
	to := "an invalid URL"
	if u, err := answer.Location(); err == nil {
		to = fmt.Sprintf("%.100q", u.Scheme+"://"+u.Host)
	}
	return fmt.Sprintf("the server %s redirects (%d) to %s; redirects are not followed, so that the token stays with the server", from.Host, answer.StatusCode, to)
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("kubernetes: answer over HTTP: %w: %d bytes", errTooLarge, mostBody)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// get asks for a JSON document; the caller closes it.
func get(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close() //nolint:errcheck // it is not read
		return nil, &refusal{url: url, status: answer.StatusCode}
	}
	return answer.Body, nil
}

// items calls f for each item of a list of Kubernetes', as it comes in: a list of pods is long, and one
// item of no sense is no reason to forget the others. An item of more than mostEvent ends the reading.
func items(r io.Reader, f func(raw json.RawMessage)) error {
	limited := &itemReader{r, mostEvent}
	d := json.NewDecoder(limited)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errList, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return errors.Join(errList, err)
		}
		var raw json.RawMessage
		if key != "items" {
			if err := d.Decode(&raw); err != nil {
				return errors.Join(errList, err)
			}
			continue
		}
		t, err := d.Token()
		if err != nil || t != nil && t != json.Delim('[') {
			return errors.Join(errList, err)
		}
		if t == nil { // null: none
			continue
		}
		for d.More() {
			if err := d.Decode(&raw); err != nil {
				return errors.Join(errList, err)
			}
			f(raw)
			limited.left = mostEvent
		}
		if _, err := d.Token(); err != nil {
			return errors.Join(errList, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.Join(errList, err)
	}
	return nil
}

// errList is an answer that is not a list.
var errList = errors.New("kubernetes: not a list in JSON")

// refusal is an answer over HTTP that is not the one asked for.
type refusal struct {
	url    string
	status int
	after  time.Duration // the server's Retry-After; 0: it has none
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %d %s", r.url, r.status, http.StatusText(r.status))
}

// longestAfter bounds what a server may ask for with Retry-After.
const longestAfter = 10 * time.Minute

// pauseOf returns the time that a Retry-After header asks for, in seconds or as a date; 0 when it makes no sense.
func pauseOf(header string) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		after = time.Until(at)
	}
	return min(max(after, 0), longestAfter)
}

// retryAfter returns the time for which the server that failed asks not to be asked; 0: it does not.
func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.after
	}
	return 0
}

// reason of an HTTP status.
func (r *refusal) reason() Reason {
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Denied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return Unsupported
	case http.StatusGone:
		return Expired
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusGatewayTimeout:
		return Hanging
	}
	return Unavailable
}
