package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// podWatch follows the metadata of the node's pods at the API server: one list, and one watch that is
// kept open. The server has pods by node at hand, and metadata are a tenth of a pod.
type podWatch struct {
	cluster *cluster
	jitter  time.Duration // the first list waits up to that long, so that a fleet does not list at once
	within  time.Duration
	backoff wait.Backoff // between tries
	reader  *reader
	table   *table
	counts  *counts
	health  *health
	begun   bool
	after   atomic.Int64 // nanoseconds for which the server last asked not to be asked
}

// relist is how the pauses between two tries grow: to half a minute and more, half of it chance.
func relist() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 20, Cap: 30 * time.Second}
}

func (w *podWatch) state() *health { return w.health }

// errNoNode is the failure of asking for the pods of a node whose name is not told.
var errNoNode = errors.New("the node's name is not configured")

// run implements provider. It tries for ever, unless the server says that we may not.
func (w *podWatch) run(ctx context.Context) {
	client, err := w.cluster.client(func() { w.counts.ask(APIServer) })
	if err == nil && w.cluster.node == "" {
		err = errNoNode
	}
	if err != nil {
		w.health.ill(why(err), err)
		return
	}
	if !w.begun && !sleep(ctx, rand.N(w.jitter+1)) {
		return
	}
	w.begun = true
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := klog.Logger{} // the health tells what changes; client-go would tell each try
	asks := &podLister{w, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}), stop}
	follow := cache.NewReflectorWithOptions(asks, &metav1.PartialObjectMetadata{}, store{w},
		cache.ReflectorOptions{Name: "pods", Logger: &quiet, Backoff: &w.backoff})
	// The reflector's own loop would go on with the pause it had come to while the server was away, though
	// a watch that has expired needs but a list.
	pauses := w.backoff
	for ctx.Err() == nil {
		began := time.Now()
		follow.ListAndWatchWithContext(klog.NewContext(ctx, quiet)) //nolint:errcheck // who asks has noted it
		if time.Since(began) > followed {
			pauses = w.backoff
		}
		sleep(ctx, max(pauses.Step(), time.Duration(w.after.Swap(0))))
	}
}

// followed is how long a list and its watch have lasted when a new one may come soon.
const followed = time.Minute

// failed notes a failure; one that will not pass ends the watch.
func (w *podWatch) failed(ctx context.Context, err error, stop func()) {
	if ctx.Err() != nil {
		return
	}
	reason := why(err)
	w.health.ill(reason, err)
	w.after.Store(int64(retryAfter(err)))
	if reason == Denied {
		stop()
	}
}

// podLister is what the reflector asks with.
type podLister struct {
	*podWatch
	pods metadata.Getter
	stop func()
}

// selector chooses the pods of the node that have not ended. One that ends leaves the watch as if it
// were deleted, which is how it is known: metadata have no phase.
func (l *podLister) selector(o metav1.ListOptions) metav1.ListOptions {
	o.FieldSelector = "spec.nodeName=" + l.cluster.node + ",status.phase!=Succeeded,status.phase!=Failed"
	return o
}

// ListWithContext implements cache.ListerWithContext.
func (l *podLister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	limited, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	list, err := l.pods.List(limited, l.selector(o))
	if err != nil {
		l.failed(ctx, err, l.stop)
		return nil, fmt.Errorf("kubernetes: list pods: %w", err)
	}
	return list, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (l *podLister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := l.pods.Watch(ctx, l.selector(o))
	if err != nil {
		l.failed(ctx, err, l.stop)
		return nil, err //nolint:wrapcheck // the reflector looks at what it is
	}
	l.health.well()
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		if e.Type == watch.Error {
			l.failed(ctx, statusError(e.Object), l.stop)
		} else { // bookmarks too, with which the server says every minute that nothing has happened
			l.counts.events.Add(1)
			l.health.well()
		}
		return e, true
	}), nil
}

// List implements cache.Lister.
func (l *podLister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (l *podLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// IsWatchListSemanticsUnSupported has the reflector list from the server's cache before it watches: a
// streamed list is a consistent one, which costs etcd a question for each node of the fleet.
func (l *podLister) IsWatchListSemanticsUnSupported() bool { return true }
