package config

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What is said of Kubernetes is taken from flags, the environment and the file.
func TestKubernetes(t *testing.T) {
	file := write(t, "kubernetes:\n  node: node-1\n  poll: 3s\n  api-url: https://api\n  kubelet-insecure: true\n  pod-annotations: [a, b]\n")
	t.Setenv("GPUMETER_KUBERNETES_KUBELET_URL", "https://10.0.0.7:10250")
	t.Setenv("GPUMETER_KUBERNETES_API_URL", "http://127.0.0.1:8001")
	c, _, err := Parse([]string{
		"--config.file", file, "--kubernetes.pod-labels=team,app.kubernetes.io/*", "--kubernetes.api-token-file=t", "--kubernetes.api-ca-file=c", "--kubernetes.api-jitter=0s",
		"--kubernetes.kubelet-token-file=T", "--kubernetes.kubelet-ca-file=C",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := Kubernetes{
		Node: "node-1", PodLabels: []string{"team", "app.kubernetes.io/*"}, PodAnnotations: []string{"a", "b"}, PodMetadata: "auto", Poll: 3 * time.Second, KubeletDir: "/var/lib/kubelet",
		KubeletURL: "https://10.0.0.7:10250", KubeletTokenFile: "T", KubeletCAFile: "C", KubeletInsecure: true,
		APIURL: "http://127.0.0.1:8001", APITokenFile: "t", APICAFile: "c",
	}
	if !reflect.DeepEqual(c.Serve.Kubernetes, want) {
		t.Errorf("got  %+v\nwant %+v", c.Serve.Kubernetes, want)
	}
	if c, _, err = Parse(nil, io.Discard); err != nil || c.Serve.Kubernetes.Poll != 5*time.Second || c.Serve.Kubernetes.APIJitter != time.Minute {
		t.Errorf("by default: %+v, %v", c.Serve.Kubernetes, err)
	}
}

func TestBadKubernetes(t *testing.T) {
	for arg, want := range map[string]string{
		"--kubernetes.poll=0s":                   "--kubernetes.poll: 0s is too short; the shortest is 100ms",
		"--kubernetes.api-jitter=-1s":            "--kubernetes.api-jitter: -1s is below zero",
		"--kubernetes.api-url=10.0.0.1:443":      `--kubernetes.api-url: "10.0.0.1:443" is not like https://`,
		"--kubernetes.api-url=unix:///run/s":     `--kubernetes.api-url: "unix:///run/s" is not like https://`,
		"--kubernetes.kubelet-url=https://":      `--kubernetes.kubelet-url: "https://" is not like https://`,
		"--kubernetes.kubelet-url=https://a b/c": `--kubernetes.kubelet-url: "https://a b/c" is not like https://`,
		"--kubernetes.pod-metadata=cluster":      `--kubernetes.pod-metadata: invalid value "cluster"; use auto, kubelet, api or none`,
	} {
		for _, command := range []string{"serve", "once"} {
			_, _, err := Parse([]string{command, arg}, io.Discard)
			if err == nil || strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s %s: error %v, want %q once", command, arg, err, want)
			}
		}
	}
}
