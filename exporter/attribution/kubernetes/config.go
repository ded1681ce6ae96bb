package kubernetes

import (
	"fmt"
	"log/slog"
	"time"
)

// Where a node has what is read, unless it is configured otherwise.
const (
	defaultSocket     = "/var/lib/kubelet/pod-resources/kubelet.sock"
	defaultCheckpoint = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
	podsSocket        = "/var/lib/kubelet/pods-api/pods-api.sock" // as Kubernetes has it from 1.36 on
	podsSocketEarly   = "/var/lib/kubelet/pods/kubelet.sock"      // as its enhancement proposal had it before
)

// Who is asked what pods are.
const (
	MetadataAuto    = "auto"    // the kubelet, then the API server, whichever first may be asked
	MetadataKubelet = "kubelet" // the kubelet alone
	MetadataAPI     = "api"     // the API server alone
	MetadataNone    = "none"    // nobody: names of pods and containers only
)

// Config says whom to ask. Empty fields take the defaults.
type Config struct {
	Node       string        // the node's name in the cluster; without it the API server is not asked
	Socket     string        // the kubelet's pod resources; default /var/lib/kubelet/pod-resources/kubelet.sock
	Checkpoint string        // the kubelet's device manager's; default /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
	Poll       time.Duration // how often the kubelet is asked who holds what; default 5 s
	Timeout    time.Duration // of each question to the kubelet, and three times that to the API server; default 10 s

	Metadata       string        // who is asked what pods are: auto (default), kubelet, api or none
	KubeletPods    []string      // sockets of the kubelet's Pods API, the first that is there; default where Kubernetes 1.36 has it, and where it was proposed
	Kubelet        Endpoint      // the kubelet's HTTPS port, such as https://10.0.0.7:10250; without a URL it is not asked
	API            Endpoint      // the API server; without a URL that of the cluster this process runs in
	Jitter         time.Duration // the API server is first asked within this time, by chance; default 1 min, negative: at once
	PodLabels      []string      // which labels of pods are told: names, with * for any characters; default none
	PodAnnotations []string      // which annotations, likewise

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // nil: nothing is logged
}

// complete fills in the defaults and checks the rest.
func (c *Config) complete() error {
	for _, d := range []struct {
		value *string
		std   string
	}{{&c.Socket, defaultSocket}, {&c.Checkpoint, defaultCheckpoint}, {&c.Metadata, MetadataAuto}} {
		if *d.value == "" {
			*d.value = d.std
		}
	}
	for _, d := range []struct {
		value *time.Duration
		std   time.Duration
	}{{&c.Poll, 5 * time.Second}, {&c.Timeout, 10 * time.Second}, {&c.Jitter, time.Minute}} {
		if *d.value == 0 {
			*d.value = d.std
		}
	}
	if len(c.KubeletPods) == 0 {
		c.KubeletPods = []string{podsSocket, podsSocketEarly}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Jitter = max(c.Jitter, 0)
	switch {
	case c.Poll < 0 || c.Timeout < 0:
		return fmt.Errorf("kubernetes: poll %s and timeout %s must be more than 0", c.Poll, c.Timeout)
	case c.Node != "" && !isPodName(c.Node): // it becomes part of questions to the API server
		return fmt.Errorf("%q is not a name of a node", c.Node)
	}
	switch c.Metadata {
	case MetadataAuto, MetadataKubelet, MetadataAPI, MetadataNone:
		return nil
	}
	return fmt.Errorf("kubernetes: metadata %q is none of auto, kubelet, api, none", c.Metadata)
}
