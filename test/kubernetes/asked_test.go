package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gpumeter/gpumeter/test/expect"
)

// event is what the API server writes down of a request of gpumeter's.
type event struct {
	AuditID, Stage, Verb, RequestURI string
	RequestReceivedTimestamp         time.Time
	ObjectRef                        struct{ Resource, Name string }
	ResponseStatus                   struct{ Code int }
	ResponseObject                   struct{ Kind string }
	User                             struct{ Username string }
}

// asked are all so far, each as it was last written down.
func asked(t *testing.T) []event {
	t.Helper()
	text, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	return events(text)
}

// events reads the log. A request that lasts is in it twice, when it was answered and when that ended.
func events(log []byte) (all []event) {
	at := map[string]int{}
	for line := range bytes.Lines(log) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			break // it is just being written
		}
		if i, known := at[e.AuditID]; known {
			all[i] = e
			continue
		}
		at[e.AuditID] = len(all)
		all = append(all, e)
	}
	return all
}

// open are the watches that have not ended.
func open(all []event) (watches []event) {
	for _, e := range all {
		if e.Verb == "watch" && e.Stage == "ResponseStarted" {
			watches = append(watches, e)
		}
	}
	return watches
}

// lists is how often the kubelet was asked who holds what, by whomever.
func (c *cluster) lists(t *testing.T) float64 {
	t.Helper()
	config := *c.config
	config.CAFile = kubeletCA
	client, err := rest.HTTPClientFor(&config)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := exporter{url: kubeletURL, client: client}
	page, err := kubelet.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	n, err := expect.Value(page, "kubelet_pod_resources_endpoint_requests_list")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// scrapes asks nobody: the kubelet is polled as ever, once a second here, and the API server not at all.
func (r *room) scrapes(t *testing.T) {
	calls, lists, began := len(asked(t)), r.lists(t), time.Now()
	for range 100 {
		if err := r.exporter.lacks(t.Context(), "gpu_up == 1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	more, took := r.lists(t)-lists, time.Since(began)
	if most := took.Seconds() + 2; more > most {
		t.Errorf("the kubelet was asked %v times in %v with 100 scrapes, want at most %v", more, took, most)
	}
	if more := asked(t)[calls:]; len(more) > 0 {
		t.Errorf("the API server was asked with the scrapes: %+v", more)
	}
}

// watches looks at all that the API server was asked until now by gpumeter of the stories.
func (r *room) watches(t *testing.T) { r.watchesFrom(t, accountNamespace) }

// watchesFrom looks at what gpumeter of that namespace asked.
func (r *room) watchesFrom(t *testing.T, namespace string) {
	t.Helper()
	all := slices.DeleteFunc(asked(t), func(e event) bool { return e.User.Username != "system:serviceaccount:"+namespace+":"+account })
	if watches := open(all); len(watches) != 1 {
		t.Errorf("%d watches are open, want 1: %+v", len(watches), watches)
	}
	listed := false
	for _, e := range all {
		if e.ResponseStatus.Code != http.StatusOK {
			t.Errorf("refused, or not needed: %+v", e)
		}
		switch e.Verb + " " + e.ObjectRef.Resource {
		case "list pods", "watch pods":
			if !strings.Contains(e.RequestURI, "fieldSelector=spec.nodeName%3D"+nodeName) {
				t.Errorf("pods of other nodes too: %+v", e)
			}
			if e.Verb == "list" {
				listed = true
				if e.ResponseObject.Kind != "PartialObjectMetadataList" {
					t.Errorf("more than metadata: %+v", e)
				}
			}
		case "get nodes":
			if e.ObjectRef.Name != nodeName {
				t.Errorf("another node: %+v", e)
			}
		case "list resourceslices":
			if !strings.Contains(e.RequestURI, "fieldSelector=spec.nodeName%3D"+nodeName) {
				t.Errorf("slices of other nodes too: %+v", e)
			}
		default:
			t.Errorf("why: %+v", e)
		}
	}
	if !listed {
		t.Errorf("pods were not listed: %+v", all)
	}
}

// watchesEnd waits until gpumeter watches nothing at the API server.
func watchesEnd(t *testing.T) {
	t.Helper()
	await(t, "end of the watch", func(context.Context) error {
		if watches := open(asked(t)); len(watches) > 0 {
			return fmt.Errorf("open: %+v", watches)
		}
		return nil
	})
}

func TestEvents(t *testing.T) {
	const log = `{"auditID": "1", "stage": "ResponseComplete", "verb": "list", "objectRef": {"resource": "pods"}}
{"auditID": "2", "stage": "ResponseStarted", "verb": "watch", "requestURI": "/old"}
{"auditID": "3", "stage": "ResponseStarted", "verb": "watch", "requestURI": "/new"}
{"auditID": "2", "stage": "ResponseComplete", "verb": "watch", "requestURI": "/old"}
{"auditID": "4", "st`
	all := events([]byte(log))
	if len(all) != 3 || all[0].ObjectRef.Resource != "pods" {
		t.Errorf("got %+v", all)
	}
	if watches := open(all); len(watches) != 1 || watches[0].RequestURI != "/new" {
		t.Errorf("open: %+v", watches)
	}
}
