package config

import (
	"fmt"
	"net/url"
	"time"
)

// Kubernetes says whom to ask about the node's pods, and how.
type Kubernetes struct {
	Node           string        `placeholder:"NODE" help:"This node's name in its cluster; without it the API server is not asked."`
	PodMetadata    string        `enum:"auto,kubelet,api,none" default:"auto" help:"Whom to ask what pods are: ${enum}."`
	PodLabels      []string      `placeholder:"PATTERN" help:"Put these labels of pods on gpu_workload_info, by name or with * for any characters; repeatable. None without."`
	PodAnnotations []string      `placeholder:"PATTERN" help:"Put these annotations of pods there too; repeatable. None without."`
	Poll           time.Duration `default:"5s" help:"Ask the kubelet this often who holds which devices."`
	KubeletDir     string        `default:"/var/lib/kubelet" help:"The kubelet's directory, with the sockets on which it tells which pods hold which devices."`

	KubeletURL       string `name:"kubelet-url" placeholder:"URL" help:"The kubelet's HTTPS port, such as https://10.0.0.7:10250; without it only its sockets are asked what pods are."`
	KubeletTokenFile string `placeholder:"FILE" help:"The token shown to the kubelet's HTTPS port. Default: the service account's."`
	KubeletCAFile    string `name:"kubelet-ca-file" placeholder:"FILE" help:"Who signs the certificate of the kubelet's HTTPS port. Default: the cluster's authority."`
	KubeletInsecure  bool   `help:"Do not check the certificate of the kubelet's HTTPS port, which kubelets often sign themselves."`

	APIURL       string        `name:"api-url" placeholder:"URL" help:"The API server. Default: that of the cluster this process runs in."`
	APITokenFile string        `name:"api-token-file" placeholder:"FILE" help:"The token shown to the API server. Default: the service account's."`
	APICAFile    string        `name:"api-ca-file" placeholder:"FILE" help:"Who signs the API server's certificate. Default: the cluster's authority."`
	APIJitter    time.Duration `name:"api-jitter" default:"1m" help:"Ask the API server first within this time, by chance, so that not all nodes of a cluster ask at once; 0s: at once."`
}

// check refuses what makes no sense.
func (k *Kubernetes) check() (faults []error) {
	if k.Poll <= 0 {
		faults = append(faults, fmt.Errorf("--kubernetes.poll: %v is not above zero", k.Poll))
	}
	if k.APIJitter < 0 {
		faults = append(faults, fmt.Errorf("--kubernetes.api-jitter: %v is below zero", k.APIJitter))
	}
	for _, u := range []struct{ flag, value string }{{"--kubernetes.kubelet-url", k.KubeletURL}, {"--kubernetes.api-url", k.APIURL}} {
		if u.value == "" {
			continue
		}
		parsed, err := url.Parse(u.value)
		if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" {
			faults = append(faults, fmt.Errorf("%s: %q is not like https://10.0.0.7:10250", u.flag, u.value))
		}
	}
	return faults
}
