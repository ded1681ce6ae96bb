package kubernetes

import (
	"context"

	"github.com/gpumeter/gpumeter/exporter/parts"
)

// Client knows who holds which devices of the node, and what the node's pods are. Its methods may be
// called at any time from anywhere, and none waits for anybody.
type Client struct {
	cfg       Config
	counts    *counts
	poller    *poller
	pods      *table
	providers chooser
	node      *nodeFacts // nil: the API server is not asked
	slices    *sliceBook // nil: likewise
	healths   []*health  // of the sources in use
	running   parts.Group
}

// New prepares a client that asks nobody before Run.
func New(cfg Config) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	labels, err := newAllowed(cfg.PodLabels)
	if err != nil {
		return nil, err
	}
	annotations, err := newAllowed(cfg.PodAnnotations)
	if err != nil {
		return nil, err
	}
	n := &counts{}
	c := &Client{cfg: cfg, counts: n, pods: newTable(n)}
	missed := make(chan struct{}, 1)
	p := &poller{
		socket: watched{path: cfg.Socket}, every: cfg.Poll, within: cfg.Timeout, now: cfg.Now, log: cfg.Logger,
		counts: n, health: c.health(PodResources), ledger: newLedger(cfg.Checkpoint, c.health(Checkpoint), n),
		told: func(Claim) (Attributes, bool) { return Attributes{}, false }, wanted: func(Claim) {},
		ended:   &endings{pods: c.pods, now: cfg.Now, counts: n},
		unheard: func() { nudge(missed) },
		hint:    make(chan struct{}, 1),
		stirred: &c.pods.stirred,
	}
	p.latest.Store(&Holdings{Health: p.health.get()})
	c.poller = p
	c.provide(&reader{labels, annotations, n}, missed)
	if cfg.Metadata == MetadataAuto || cfg.Metadata == MetadataAPI {
		api := &cluster{cfg.API, cfg.Node}
		c.node = &nodeFacts{cluster: api, jitter: cfg.Jitter, within: 3 * cfg.Timeout, counts: n, health: c.health(NodeFacts)}
		c.slices = &sliceBook{
			cluster: api, jitter: cfg.Jitter, within: 3 * cfg.Timeout, counts: n, health: c.health(Slices),
			learned: func() { nudge(p.hint) }, wake: make(chan struct{}, 1), wanted: map[deviceName]bool{},
		}
		p.told, p.wanted = c.slices.told, c.slices.want
	}
	return c, nil
}

// provide lists who may tell what pods are, in the order of what it costs the cluster.
func (c *Client) provide(r *reader, missed <-chan struct{}) {
	cfg := &c.cfg
	c.providers = chooser{log: cfg.Logger, pause: respite, look: betterEvery}
	if cfg.Metadata == MetadataAuto || cfg.Metadata == MetadataKubelet {
		c.providers.better = cfg.KubeletPods
		c.providers.providers = append(c.providers.providers, &podsAPI{
			sockets: cfg.KubeletPods, within: cfg.Timeout, reader: r, table: c.pods, counts: c.counts, health: c.health(KubeletPods), missed: missed,
		})
		if cfg.Kubelet.URL != "" {
			c.providers.providers = append(c.providers.providers, &kubeletPods{
				endpoint: cfg.Kubelet, within: cfg.Timeout, every: kubeletEvery, apart: listApart, reader: r, table: c.pods, counts: c.counts, health: c.health(KubeletHTTPS), missed: missed,
			})
		}
	}
	if cfg.Metadata == MetadataAuto || cfg.Metadata == MetadataAPI {
		c.providers.providers = append(c.providers.providers, &podWatch{
			cluster: &cluster{cfg.API, cfg.Node}, jitter: cfg.Jitter, within: 3 * cfg.Timeout, backoff: relist(),
			reader: r, table: c.pods, counts: c.counts, health: c.health(APIServer),
		})
	}
}

// health makes the health of one source in use.
func (c *Client) health(s Source) *health {
	h := newHealth(s, c.counts, c.cfg.Now, c.cfg.Logger)
	c.healths = append(c.healths, h)
	return h
}

// nudge wakes whoever waits, without waiting.
func nudge(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run asks until the context ends.
func (c *Client) Run(ctx context.Context) {
	c.running.Go("pod-resources", func() { c.poller.run(ctx) })
	c.running.Go("pods", func() { c.providers.run(ctx) })
	if c.node != nil {
		c.running.Go("node", func() { c.node.run(ctx) })
		c.running.Go("resource-slices", func() { c.slices.run(ctx) })
	}
	c.running.Wait(context.Background())
}

// Running returns which queries Run has started and have not ended.
func (c *Client) Running() []string { return c.running.Running() }

// Holdings are who held what when the kubelet was last asked. It is never nil.
func (c *Client) Holdings() *Holdings { return c.poller.latest.Load() }

// Pod is what is known of the pod of that name; a pod that has ended is not known.
func (c *Client) Pod(namespace, name string) (Pod, bool) { return c.pods.named(namespace, name) }

// PodByUID finds a pod by its UID or, as control groups have it of a static pod, by the hash of its
// configuration.
func (c *Client) PodByUID(uid string) (Pod, bool) { return c.pods.withUID(uid) }

// PodByContainer finds a pod, and which of its containers it is, by the id of the container. It finds
// none where the source tells metadata only.
func (c *Client) PodByContainer(id string) (Pod, Container, bool) { return c.pods.withContainer(id) }

// Holder is the pod that holds: not one of the same name that came after or before it, where the
// checkpoint tells which is meant.
func (c *Client) Holder(h *Holding) (Pod, bool) {
	p, ok := c.pods.named(h.Namespace, h.Pod)
	if ok && (h.UID == "" || h.UID == p.UID || h.UID == p.Hash) {
		return p, true
	}
	if p, ok = c.pods.withUID(h.UID); ok && p.Namespace == h.Namespace && p.Name == h.Pod {
		return p, true
	}
	return Pod{}, false
}

// Pods says how well pods are known: by whom, how many, and how that source is. Without a source that
// has told, it is the first that is waited for.
func (c *Client) Pods() (by Source, n int, h Health) {
	n, teller := c.pods.told()
	if teller != nil {
		return teller.source, n, teller.get()
	}
	for _, p := range c.providers.providers {
		if h = p.state().get(); h.Reason == Waiting {
			break
		}
	}
	if len(c.providers.providers) == 0 {
		h.Reason = Unset
	}
	return "", n, h
}

// Node is what the API server says of the node; only the name where it was not asked or has not answered.
func (c *Client) Node() Node {
	if c.node != nil {
		if n := c.node.latest.Load(); n != nil {
			return *n
		}
	}
	return Node{Name: c.cfg.Node}
}

// Sources tell how each source in use is.
func (c *Client) Sources() map[Source]Health {
	out := map[Source]Health{}
	for _, h := range c.healths {
		out[h.source] = h.get()
	}
	return out
}

// Counts are what was asked, and what went wrong, since the start.
func (c *Client) Counts() Counts {
	var used []Source
	for _, h := range c.healths {
		used = append(used, h.source)
	}
	return c.counts.read(used)
}
