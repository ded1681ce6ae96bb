package config

import (
	"fmt"
	"net/url"
	"time"
)

// Kubernetes are the settings of the kubelet and the API server.
type Kubernetes struct {
	Node           string        `placeholder:"NODE" help:"This node's name in its cluster; without it the API server is not queried."`
	PodMetadata    string        `enum:"auto, kubelet, api, none" default:"auto" help:"Where the metadata of pods comes from: ${enum}."`
	PodLabels      []string      `placeholder:"PATTERN" help:"Labels of pods to put on gpu_workload_info, by name or with * for any characters; repeatable."`
	PodAnnotations []string      `placeholder:"PATTERN" help:"Annotations of pods to put on gpu_workload_info, in the same way; repeatable."`
	Poll           time.Duration `default:"5s" help:"Interval at which the kubelet is asked which pods hold which devices."`
	KubeletDir     string        `default:"/var/lib/kubelet" help:"The kubelet's directory, with the sockets that list the pods and their devices."`

	KubeletURL       string `name:"kubelet-url" placeholder:"URL" help:"The kubelet's HTTPS port, such as https://10.0.0.7:10250; without it only its sockets are used."`
	KubeletTokenFile string `placeholder:"FILE" help:"Token for the kubelet's HTTPS port. Default: the service account's."`
	KubeletCAFile    string `name:"kubelet-ca-file" placeholder:"FILE" help:"Authority that signs the certificate of the kubelet's HTTPS port. Default: the cluster's."`
	KubeletInsecure  bool   `help:"Do not check the certificate of the kubelet's HTTPS port, which kubelets often sign themselves."`

	APIURL       string        `name:"api-url" placeholder:"URL" help:"The API server. Default: that of the cluster this process runs in."`
	APITokenFile string        `name:"api-token-file" placeholder:"FILE" help:"Token for the API server. Default: the service account's."`
	APICAFile    string        `name:"api-ca-file" placeholder:"FILE" help:"Authority that signs the API server's certificate. Default: the cluster's."`
	APIJitter    time.Duration `name:"api-jitter" default:"1m" help:"Random delay of at most this long before the first request to the API server, so that the nodes of a cluster do not all send it at once; 0s: no delay."`
}

// check refuses what makes no sense.
func (k *Kubernetes) check() (faults []error) {
	faults = append(faults, atLeast("kubernetes.poll", k.Poll, minInterval), atLeast("kubernetes.api-jitter", k.APIJitter, 0))
	for _, u := range []struct{ flag, value string }{{"kubernetes.kubelet-url", k.KubeletURL}, {"kubernetes.api-url", k.APIURL}} {
		if u.value == "" {
			continue
		}
		parsed, err := url.Parse(u.value)
		if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" {
			faults = append(faults, &SettingError{Flag: u.flag, Err: fmt.Errorf("%q is not like https://10.0.0.7:10250", u.value)})
		}
	}
	return faults
}
