package kubernetes

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// podsAPI reads the kubelet's Pods API (KEP-4188): no rights in the cluster and no load on the API
// server, but a kubelet of 1.37, or of 1.36 with the feature PodsAPI switched on.
type podsAPI struct {
	sockets []string
	within  time.Duration
	reader  *reader
	table   *table
	counts  *counts
	health  *health
	missed  <-chan struct{} // a pod holds devices and is not in the table
}

const (
	// listAgain is how often all pods are listed while they are watched: a kubelet drops events when it
	// has many at once, and says so only to its own log. The first time comes soon after the watch has
	// begun, for what happened between list and watch.
	listAgain, listSoon = time.Minute, 10 * time.Second
	// listApart is the least time between two lists.
	listApart = 5 * time.Second
	// listAlone is how often pods are listed where they can not be watched.
	listAlone = 15 * time.Second
	// Pauses between two tries.
	shortestTry, longestTry = time.Second, 30 * time.Second
	// startTries is how often a kubelet that has never told, and says that it is starting, is asked again.
	startTries = 6
)

func (a *podsAPI) state() *health { return a.health }

// run implements provider.
func (a *podsAPI) run(ctx context.Context) {
	socket, err := a.socket()
	if err != nil {
		a.health.ill(why(err), err)
		return
	}
	line, err := openLine(socket)
	if err != nil {
		a.health.ill(Broken, err)
		return
	}
	defer line.Close() //nolint:errcheck // nothing is left to lose
	client := pods.NewPodsClient(line)
	told := false
	for tries := 0; ; tries++ {
		err := a.list(ctx, client)
		if err == nil {
			told, tries = true, 0
			err = a.follow(ctx, client)
		}
		if ctx.Err() != nil {
			return
		}
		reason := line.why(err)
		a.health.ill(reason, err)
		if !told && (reason != Starting || tries >= startTries) || reason == Missing || reason == Denied || reason == Unsupported {
			return
		}
		pause := min(shortestTry<<min(tries, 10), longestTry)
		if !sleep(ctx, pause/2+rand.N(pause/2)) {
			return
		}
	}
}

// socket is the first that is there, or why the first is not.
func (a *podsAPI) socket() (string, error) {
	var missing error
	for _, path := range a.sockets {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if missing == nil {
			missing = err
		}
	}
	return "", cmp.Or(missing, os.ErrNotExist)
}

// list takes in all pods.
func (a *podsAPI) list(ctx context.Context, client pods.PodsClient) error {
	a.counts.ask(KubeletPods)
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	answer, err := client.ListPods(ctx, &pods.ListPodsRequest{}, within(mostPodList))
	if err != nil {
		return err
	}
	all := make([]*Pod, 0, len(answer.GetPods()))
	for _, raw := range answer.GetPods() {
		if p := a.pod(raw); p != nil {
			all = append(all, p)
		}
	}
	a.table.replace(all, a.health)
	a.health.well()
	return nil
}

// pod decodes one; nil: it makes no sense.
func (a *podsAPI) pod(raw []byte) *Pod {
	r, err := decodePod(raw)
	if err != nil {
		a.counts.rejected.Add(1)
		return nil
	}
	p, err := a.reader.pod(r)
	if err != nil {
		return nil // counted there
	}
	return p
}

// follow watches, and lists again now and then. A kubelet without the watch is listed more often.
func (a *podsAPI) follow(ctx context.Context, client pods.PodsClient) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, failed := make(chan *pods.WatchPodsEvent), make(chan error, 1)
	stream, err := client.WatchPods(ctx, &pods.WatchPodsRequest{}, within(mostEvent))
	if err != nil {
		return err
	}
	go func() {
		for {
			event, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	every, listed := listAgain, time.Now()
	again := time.NewTimer(listSoon)
	defer again.Stop()
	for {
		select {
		case event := <-events:
			a.event(event)
			continue
		case err := <-failed:
			if status.Code(err) != codes.Unimplemented {
				return streamEnd(err)
			}
			failed, every = nil, listAlone
			again.Reset(every)
			continue
		case <-a.missed:
			if time.Since(listed) < listApart {
				continue
			}
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.list(ctx, client); err != nil {
			return err
		}
		listed = time.Now()
		again.Reset(every + rand.N(every/4))
	}
}

// streamEnd names the end of a stream.
func streamEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // the stream returns it bare
		return status.Error(codes.Unavailable, "the kubelet ended the watch")
	}
	return err
}

// event takes in one.
func (a *podsAPI) event(e *pods.WatchPodsEvent) {
	a.counts.events.Add(1)
	a.health.well()
	switch e.GetType() {
	case pods.EventType_ADDED, pods.EventType_MODIFIED:
		if p := a.pod(e.GetPod()); p != nil {
			a.table.set(p)
		}
	case pods.EventType_DELETED: // no more than names and UID are promised
		if r, err := decodePod(e.GetPod()); err == nil && r.UID != "" {
			a.table.remove(r.Namespace, r.Name, r.UID)
		}
	case pods.EventType_INITIAL_SYNC_COMPLETE: // they were listed
	default:
		a.counts.rejected.Add(1)
	}
}
