package kubernetes

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Node is what the node's labels say of it.
type Node struct {
	Name         string
	Region, Zone string
	InstanceType string // the cloud's name of the sort of machine
}

// nodeFacts reads the node's labels now and then.
type nodeFacts struct {
	cluster *cluster
	jitter  time.Duration
	within  time.Duration
	counts  *counts
	health  *health
	latest  atomic.Pointer[Node]
}

// Nodes change their labels rarely, and there are as many questions as nodes.
const nodeEvery, nodeSoon = 10 * time.Minute, 30 * time.Second

// run ends with the context.
func (n *nodeFacts) run(ctx context.Context) {
	pause := rand.N(n.jitter + 1)
	for tries := 0; sleep(ctx, pause); tries++ {
		node, err := n.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.health.ill(why(err), err)
			pause = max(min(nodeSoon<<min(tries, 10), nodeEvery), retryAfter(err))
		} else {
			n.health.well()
			n.latest.Store(node)
			pause, tries = nodeEvery, 0
		}
		pause += rand.N(pause / 2)
	}
}

func (n *nodeFacts) read(ctx context.Context) (*Node, error) {
	client, err := n.cluster.client(func() { n.counts.ask(NodeFacts) })
	if err == nil && n.cluster.node == "" {
		err = errNoNode
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.within)
	defer cancel()
	// From the server's cache: labels a moment old will do.
	m, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, n.cluster.node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	first := func(names ...string) string {
		for _, name := range names {
			if v := m.Labels[name]; v != "" && isLabel(name, v) {
				return v
			}
		}
		return ""
	}
	return &Node{
		Name:         n.cluster.node,
		Region:       first("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
		Zone:         first("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
		InstanceType: first("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
	}, nil
}
