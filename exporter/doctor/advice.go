package doctor

import (
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Why nobody knows whose a process is.
const (
	NotSeen = "its number is not in /proc"
	NotRead = "/proc may not be read"
	Hanging = "/proc does not answer"
	NoSense = "what /proc says of it makes no sense"
	NoPod   = "its pod is not known"
	OfSlurm = "it is Slurm's own"
)

// processAdvice is what to change where a process is not placed.
var processAdvice = map[string]string{
	NotSeen: "the driver's processes are not in this /proc: mount the host's and say where with --host.proc, or run in the host's PID namespace (hostPID: true)",
	NotRead: "the host's /proc may not be read: run as uid 0, and mount it without hidepid",
	Hanging: "the host's /proc does not answer: the kernel is in trouble; see its log for tasks that hang",
	NoPod:   "processes of pods are seen whose names nobody tells: mount the kubelet's directory (--kubernetes.kubelet-dir) and give one source of pod metadata",
}

const strayAdvice = "pods hold devices that are not read here: see whether --devices leaves them out, or a driver does not list them"

// sourceAdvice is what to change where devices are not read.
var sourceAdvice = map[telemetry.SourceState]string{
	telemetry.SourceStateUnbuilt:  "this build can not read NVIDIA devices: take one with cgo",
	telemetry.SourceStateReleased: "the devices are released: SIGUSR2 or a POST to /-/acquire takes them back",
}

// told is what each source of Kubernetes tells.
var told = map[kubernetes.Source]string{
	kubernetes.PodResources: "which containers hold which devices",
	kubernetes.Checkpoint:   "which pods were given devices, with their UIDs",
	kubernetes.KubeletPods:  "what the pods are (the kubelet's Pods API)",
	kubernetes.KubeletHTTPS: "what the pods are (the kubelet's HTTPS port)",
	kubernetes.APIServer:    "what the pods are (the API server)",
	kubernetes.NodeFacts:    "what this node is",
	kubernetes.Slices:       "what DRA's devices are",
}

// cause is a source of Kubernetes and why it does not answer.
type cause struct {
	kubernetes.Source
	kubernetes.Reason
}

// kubernetesAdvice is what to change about it.
var kubernetesAdvice = map[cause]string{
	{kubernetes.PodResources, kubernetes.Missing}:     "the kubelet's socket is not there: mount the node's /var/lib/kubelet/pod-resources, or say with --kubernetes.kubelet-dir where it is",
	{kubernetes.PodResources, kubernetes.Denied}:      "the kubelet's socket may not be opened: run as uid 0; no capability is needed",
	{kubernetes.PodResources, kubernetes.Refused}:     "nobody listens on the kubelet's socket: see that the kubelet runs, and mount the directory rather than the socket, which it makes anew",
	{kubernetes.PodResources, kubernetes.Hanging}:     "the kubelet does not answer: see its log",
	{kubernetes.PodResources, kubernetes.TooLarge}:    "the kubelet's answer is too large to be read: see what holds so many devices on this node",
	{kubernetes.PodResources, kubernetes.Unsupported}: "the kubelet does not serve pod resources: it is too old, or the feature gate is off",
	{kubernetes.PodResources, kubernetes.RateLimited}: "the kubelet has too many who ask for pod resources: see which other agents do",
	{kubernetes.Checkpoint, kubernetes.Missing}:       "the kubelet's checkpoint is not there: mount the node's /var/lib/kubelet/device-plugins; without it pods of one name are not told apart and short ones not counted",
	{kubernetes.Checkpoint, kubernetes.Denied}:        "the kubelet's checkpoint may not be read: run as uid 0; no capability is needed",
	{kubernetes.KubeletHTTPS, kubernetes.Denied}:      "the kubelet does not let us ask for its pods: grant get on nodes/pods (before Kubernetes 1.33 nodes/proxy)",
	{kubernetes.APIServer, kubernetes.Unset}:          "the API server is not asked: run in a pod with --kubernetes.node set to spec.nodeName, or give its address",
	{kubernetes.APIServer, kubernetes.Denied}:         "the API server does not tell of pods: grant list and watch on pods",
	{kubernetes.Slices, kubernetes.Denied}:            "the API server does not tell what DRA's devices are: grant list on resourceslices of resource.k8s.io",
	{kubernetes.NodeFacts, kubernetes.Denied}:         "the API server does not tell what this node is: grant get on nodes",
}

// unreachable is the advice on a server that does not answer.
const unreachable = "the API server does not answer: see the network between it and this node; what was known before stays"

// kubernetesOrder is that in which the witnesses are listed.
var kubernetesOrder = []kubernetes.Source{
	kubernetes.PodResources, kubernetes.Checkpoint, kubernetes.KubeletPods, kubernetes.KubeletHTTPS, kubernetes.APIServer,
	kubernetes.Slices, kubernetes.NodeFacts,
}
