package doctor

import "github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"

// Why the owner of a process is not known.
const (
	NotSeen = "PID not in /proc"
	NotRead = "/proc not readable"
	NoFiles = "too many open files"
	Hanging = "/proc does not respond"
	NoSense = "/proc entry not understood"
	NoPod   = "pod unknown"
	OfSlurm = "process of Slurm itself"
)

// processAdvice is what to do about a process without an owner.
var processAdvice = map[string]string{
	NotSeen: "The driver's PIDs are not in this /proc: mount the host's /proc and name it with --host.proc, or run in the host's PID namespace (hostPID: true).",
	NotRead: "The host's /proc cannot be read: run as uid 0, and mount /proc without hidepid.",
	NoFiles: "gpumeter has too many open files: raise its limit (LimitNOFILE= of the unit, ulimit -n); 1024 are enough.",
	Hanging: "The host's /proc does not respond: look for hung tasks in the kernel log (dmesg).",
	NoPod:   "No provider names the pods of some processes: mount the kubelet's directory (--kubernetes.kubelet-dir), and set up one provider of pod metadata.",
}

const strayAdvice = "Check whether --devices leaves these devices out, or a driver does not list them."

// told is what each provider of Kubernetes provides.
var told = map[kubernetes.Source]string{
	kubernetes.PodResources: "devices of each container",
	kubernetes.Checkpoint:   "devices and UIDs of pods",
	kubernetes.KubeletPods:  "pod metadata from the kubelet's Pods API",
	kubernetes.KubeletHTTPS: "pod metadata from the kubelet's HTTPS port",
	kubernetes.APIServer:    "pod metadata from the API server",
	kubernetes.NodeFacts:    "metadata of this node",
	kubernetes.Slices:       "DRA devices",
}

// cause is a provider of Kubernetes and why it does not respond.
type cause struct {
	kubernetes.Source
	kubernetes.Reason
}

// kubernetesAdvice is what to do about it.
var kubernetesAdvice = map[cause]string{
	{kubernetes.PodResources, kubernetes.Missing}:     "The kubelet's socket does not exist: mount the node's /var/lib/kubelet/pod-resources, or name the kubelet's directory with --kubernetes.kubelet-dir.",
	{kubernetes.PodResources, kubernetes.Denied}:      "The kubelet's socket cannot be opened: run as uid 0; no capability is needed.",
	{kubernetes.PodResources, kubernetes.Refused}:     "The kubelet does not listen on its socket: check that it runs, and mount the directory rather than the socket, which the kubelet creates again at each start.",
	{kubernetes.PodResources, kubernetes.Hanging}:     "The kubelet does not respond: look at its log.",
	{kubernetes.PodResources, kubernetes.TooLarge}:    "The kubelet's response is too large: find out which pods hold so many devices on this node.",
	{kubernetes.PodResources, kubernetes.Unsupported}: "The kubelet does not serve pod resources: it is too old, or the feature gate is off.",
	{kubernetes.PodResources, kubernetes.RateLimited}: "The kubelet limits the rate of pod-resources requests: find the other agents that send them.",
	{kubernetes.Checkpoint, kubernetes.Missing}:       "The kubelet's checkpoint does not exist: mount the node's /var/lib/kubelet/device-plugins. Without it, pods of one name are not told apart, and short pods are not counted.",
	{kubernetes.Checkpoint, kubernetes.Denied}:        "The kubelet's checkpoint cannot be read: run as uid 0; no capability is needed.",
	{kubernetes.KubeletHTTPS, kubernetes.Denied}:      "The kubelet denies the list of its pods: grant get on nodes/pods (before Kubernetes 1.33, on nodes/proxy).",
	{kubernetes.APIServer, kubernetes.Unset}:          "The API server is not queried: run in a pod with --kubernetes.node set to spec.nodeName, or set --kubernetes.api-url.",
	{kubernetes.APIServer, kubernetes.Denied}:         "The API server denies the list of pods: grant list and watch on pods.",
	{kubernetes.Slices, kubernetes.Denied}:            "The API server denies the list of DRA devices: grant list on resourceslices of resource.k8s.io.",
	{kubernetes.NodeFacts, kubernetes.Denied}:         "The API server denies this node: grant get on nodes.",
}

// unreachable is the advice on a server that does not respond.
const unreachable = "The API server does not respond: check the network between it and this node. What it returned before stays in use."

// kubernetesOrder is the order in which the providers are listed.
var kubernetesOrder = []kubernetes.Source{
	kubernetes.PodResources, kubernetes.Checkpoint, kubernetes.KubeletPods, kubernetes.KubeletHTTPS, kubernetes.APIServer,
	kubernetes.Slices, kubernetes.NodeFacts,
}
