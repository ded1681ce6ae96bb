package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	nodeName = "node-1"
	apiURL   = "https://" + address + ":443"
	// A kubelet signs a certificate for its node's name, and not for its address.
	kubeletURL = "https://" + nodeName + ":10250"
	// The room's own directories stand where nodes have them.
	kubeletDir = "/var/lib/kubelet"
	roomDir    = "/run/room"
	kubeconfig = roomDir + "/kubeconfig"         // the administrator's, and the kubelet's own beside it
	apiCA      = roomDir + "/api/apiserver.crt"  // the server signs its own certificate
	kubeletCA  = kubeletDir + "/pki/kubelet.crt" // and so does the kubelet
	auditLog   = roomDir + "/audit.log"
)

// cluster is a node and its API server.
type cluster struct {
	etcd, api, controllers, scheduler *daemon
	containerd, kubelet               *daemon
	admin                             kubernetes.Interface
	config                            *rest.Config
}

// startCluster starts it, and has it ended with the test.
func startCluster(t *testing.T) *cluster {
	c := &cluster{
		config: &rest.Config{Host: apiURL, BearerToken: "admin", TLSClientConfig: rest.TLSClientConfig{CAFile: apiCA}, QPS: -1},
	}
	c.etcd = c.daemon("etcd", nil, "--data-dir", roomDir+"/etcd", "--unsafe-no-fsync")
	c.api = c.apiServer(t)
	asUser(t, kubeconfig, "admin")
	c.containerd = c.runtime(t)
	c.kubelet = c.node(t)
	c.controllers = c.daemon("kube-controller-manager", nil, "--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig,
		"--authorization-kubeconfig", kubeconfig, "--root-ca-file", apiCA, "--cert-dir", roomDir+"/controllers", "--leader-elect=false")
	c.scheduler = c.daemon("kube-scheduler", nil, "--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig,
		"--authorization-kubeconfig", kubeconfig, "--cert-dir", roomDir+"/scheduler", "--leader-elect=false")
	t.Cleanup(func() {
		for _, d := range []*daemon{c.scheduler, c.controllers, c.kubelet, c.containerd, c.api, c.etcd} { // they end with the room
			if t.Failed() {
				t.Logf("%s said last:\n%s", d.name, d.tail())
			}
		}
	})
	c.etcd.start(t)
	c.containerd.start(t)
	c.startAPI(t)
	importPayload(t)
	c.startKubelet(t)
	return c
}

// startAPI starts the API server and waits until it answers. It writes down anew what it is asked: of one
// that was killed nobody knows what has ended.
func (c *cluster) startAPI(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(auditLog); err != nil {
		t.Fatal(err)
	}
	c.api.start(t)
	await(t, "the API server", func(ctx context.Context) error {
		client, err := kubernetes.NewForConfig(c.config)
		if err != nil {
			return err // the certificate is not there yet
		}
		c.admin = client
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startKubelet starts it and waits until it says that it takes pods.
func (c *cluster) startKubelet(t *testing.T) {
	t.Helper()
	c.kubelet.start(t)
	c.awaitNode(t)
}

// awaitNode waits until the kubelet says from now on that it takes pods.
func (c *cluster) awaitNode(t *testing.T) {
	t.Helper()
	began := time.Now().Truncate(time.Second) // as Kubernetes tells times
	await(t, "the node", func(ctx context.Context) error {
		node, err := c.admin.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, is := range node.Status.Conditions {
			if is.Type == corev1.NodeReady && is.Status == corev1.ConditionTrue && is.LastHeartbeatTime.After(began) {
				return nil
			}
		}
		return fmt.Errorf("not ready: %+v", node.Status.Conditions)
	})
}

// stopKubelet has it end as a service is stopped.
func (c *cluster) stopKubelet(t *testing.T) {
	t.Helper()
	if err := c.kubelet.stop(); err != nil {
		t.Fatalf("kubelet: %v\n%s", err, c.kubelet.tail())
	}
}

func (c *cluster) daemon(name string, env []string, args ...string) *daemon {
	path := name
	if built := os.Getenv("GPUMETER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); built != "" {
		path = built
	}
	return &daemon{name: name, path: path, args: args, env: env, log: filepath.Join(roomDir, name+".log")}
}

// Whoever asks is written down: what gpumeter lists in full, so that it is seen that it is metadata.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    users: ["system:serviceaccount:monitoring:gpumeter", "system:serviceaccount:gpus:gpumeter"]
  - level: None
`

// withoutAccounts lets pods in that have no service account, for as long as there is no controller to make them one.
const withoutAccounts = "--disable-admission-plugins=ServiceAccount"

// apiServer knows the administrator and the kubelet by tokens, and everybody else as clusters do.
func (c *cluster) apiServer(t *testing.T) *daemon {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	accounts := write(t, roomDir+"/accounts.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	tokens := write(t, roomDir+"/tokens.csv", "admin,admin,1,system:masters\nkubelet,system:node:"+nodeName+",2,\"system:nodes,system:masters\"\n")
	return c.daemon("kube-apiserver", nil,
		"--etcd-servers=http://127.0.0.1:2379", "--secure-port=443", "--advertise-address="+address, "--cert-dir="+filepath.Dir(apiCA),
		"--service-cluster-ip-range="+services, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+accounts, "--service-account-signing-key-file="+accounts,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", withoutAccounts, "--allow-privileged=true",
		"--audit-policy-file="+write(t, roomDir+"/audit.yaml", auditPolicy), "--audit-log-path="+auditLog,
	)
}

// Pods of the test's own have the host's network. Those of the chart have addresses of a bridge, and may have the
// devices' driver by the runtime class of NVIDIA's operator.
const runtimeConfig = `
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + image + `"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "` + roomDir + `/nvidia"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "` + roomDir + `/cni"
`

const podNetwork = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
	"ipam": {"type": "host-local", "subnet": "10.79.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}`

func (c *cluster) runtime(t *testing.T) *daemon {
	write(t, roomDir+"/cni/10-pods.conflist", podNetwork)
	return c.daemon("containerd", nil, "--config", write(t, roomDir+"/containerd.toml", runtimeConfig))
}

// kubeletConfig is the kubelet's, in which its Pods API is on or off.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ` + address + `
authentication: {anonymous: {enabled: false}, webhook: {enabled: true, cacheTTL: 1s}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 1s, cacheUnauthorizedTTL: 1s}}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
resolvConf: ""
clusterDNS: [` + address + `]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 1Mi}
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 1s
featureGates: {PodsAPI: %t}
`

// asUser writes the configuration of whoever is known by that token.
func asUser(t *testing.T, file, token string) {
	write(t, file, `{"apiVersion": "v1", "kind": "Config", "current-context": "room",
		"clusters": [{"name": "room", "cluster": {"server": "`+apiURL+`", "certificate-authority": "`+apiCA+`"}}],
		"users": [{"name": "`+token+`", "user": {"token": "`+token+`"}}],
		"contexts": [{"name": "room", "context": {"cluster": "room", "user": "`+token+`"}}]}`)
}

func (c *cluster) node(t *testing.T) *daemon {
	config := roomDir + "/kubelet.kubeconfig"
	asUser(t, config, "kubelet")
	c.configure(t, false)
	return c.daemon("kubelet", nil, "--config", roomDir+"/kubelet.yaml", "--kubeconfig", config,
		"--hostname-override", nodeName, "--node-ip", address)
}

// configure says with what the kubelet starts next.
func (c *cluster) configure(t *testing.T, podsAPI bool) {
	write(t, roomDir+"/kubelet.yaml", fmt.Sprintf(kubeletConfig, podsAPI))
}
