package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpumeter/gpumeter/test/expect"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// account is whom gpumeter is to the cluster.
const account, accountNamespace = "gpumeter", "monitoring"

// rights are all that gpumeter needs of the API server, and of the kubelet's HTTPS port.
var rights = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: []string{"list"}},
	{APIGroups: []string{""}, Resources: []string{"nodes/pods"}, Verbs: []string{"get"}},
}

// driver is the fake one of the node.
type driver struct{ library, config string }

// buildDriver wants the root of the repository for the working directory.
func buildDriver(t *testing.T) driver {
	dir := fakenvml.Build(t)
	return driver{filepath.Join(dir, fakenvml.Library), filepath.Join(dir, "config")}
}

func (d driver) tell(t *testing.T, lines ...string) {
	t.Helper()
	fakenvml.Configure(t, d.config, append([]string{"gpus 5", "board h100", "load * 40", "mig 2 on 1g.10gb:7:0,3g.40gb:2:0"}, lines...)...)
}

// uuid is that of a GPU of the fake driver, and mig that of the first instance on the third.
func uuid(gpu int) string { return fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", gpu) }

const mig = "MIG-00000000-0000-5000-8000-000200070000"

// admit gives gpumeter its account, its rights and its token.
func (c *cluster) admit(t *testing.T) (token string) {
	t.Helper()
	ctx := t.Context()
	var failed error
	for _, name := range []string{accountNamespace, "ml", "lab"} {
		_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		failed = errors.Join(failed, err)
	}
	meta := metav1.ObjectMeta{Name: account}
	_, err := c.admin.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	failed = errors.Join(failed, err)
	_, err = c.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rights}, metav1.CreateOptions{})
	failed = errors.Join(failed, err)
	_, err = c.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: accountNamespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: account},
	}, metav1.CreateOptions{})
	failed = errors.Join(failed, err)
	answer, err := c.admin.CoreV1().ServiceAccounts(accountNamespace).CreateToken(ctx, account, new(authv1.TokenRequest), metav1.CreateOptions{})
	if failed = errors.Join(failed, err); failed != nil {
		t.Fatal(failed)
	}
	return write(t, roomDir+"/gpumeter.token", answer.Status.Token)
}

// exporter is a running gpumeter.
type exporter struct {
	*daemon
	url    string
	client *http.Client
}

// serve starts gpumeter on a port, and has it ended with the test.
func (c *cluster) serve(t *testing.T, gpus driver, port int, args ...string) *exporter {
	t.Helper()
	on := fmt.Sprintf("127.0.0.1:%d", port)
	e := &exporter{url: "http://" + on, client: http.DefaultClient}
	empty := t.TempDir()
	e.daemon = c.daemon("gpumeter", []string{"FAKENVML_CONFIG=" + gpus.config, "GPUMETER_LOG_LEVEL=debug"}, append([]string{
		"serve", "--web.listen-address", on, "--nvml.library", gpus.library, "--host.sys", empty, "--kernel-log", "none",
		"--max-age", "1ms", "--kubernetes.poll", "1s", "--kubernetes.node", nodeName,
	}, args...)...)
	e.path, e.log = os.Getenv("GPUMETER_BINARY"), filepath.Join(roomDir, fmt.Sprintf("gpumeter-%d.log", port))
	e.start(t)
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Errorf("gpumeter: %v", err)
		}
		if text, err := os.ReadFile(e.log); err != nil || strings.Contains(string(text), "panic") {
			t.Errorf("gpumeter's log: %v\n%s", err, text)
		}
		if t.Failed() {
			t.Logf("gpumeter said last:\n%s", e.tail())
		}
	})
	await(t, "gpumeter", func(ctx context.Context) error {
		_, err := e.get(ctx, "/readyz")
		return err
	})
	return e
}

// asksAPI are the arguments that say where the API server is.
func asksAPI(token string) []string {
	return []string{"--kubernetes.api-url", apiURL, "--kubernetes.api-ca-file", apiCA, "--kubernetes.api-token-file", token, "--kubernetes.api-jitter", "0s"}
}

func (e *exporter) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return string(body), err
}

// shows waits for a page that has all that is expected at once.
func (e *exporter) shows(t *testing.T, expected ...string) {
	t.Helper()
	await(t, "the page", func(ctx context.Context) error { return e.lacks(ctx, expected...) })
}

// lacks says what the page does now.
func (e *exporter) lacks(ctx context.Context, expected ...string) error {
	page, err := e.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	lacks, err := expect.Lacking(page, expected...)
	if err == nil && len(lacks) > 0 {
		err = errors.New(strings.Join(lacks, "\n"))
	}
	return err
}
