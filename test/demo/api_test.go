package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// patience is how long anything may take that is waited for.
const patience = 2 * time.Minute

// await looks again and again until something holds; why says why it does not.
func await(t *testing.T, what string, holds func() (why string)) {
	t.Helper()
	since := time.Now()
	for {
		why := holds()
		if why == "" {
			t.Logf("%s: after %v", what, time.Since(since).Round(time.Second))
			return
		}
		if time.Since(since) > patience {
			t.Fatalf("not within %v: %s: %s", patience, what, why)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// get reads JSON from an address.
func get(ctx context.Context, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s\n%s", address, answer.Status, body)
	}
	return json.Unmarshal(body, into)
}

type labels map[string]string

// sample is one of a query's answer.
type sample struct {
	Metric labels
	Value  [2]any // when and what
}

// reply is what Prometheus says to a query.
type reply struct {
	Warnings, Infos []string
	Data            struct{ Result []sample }
}

// query asks Prometheus.
func (d *demo) query(t *testing.T, expr string) reply {
	t.Helper()
	var r reply
	if err := get(t.Context(), d.prometheus.url+"/api/v1/query?query="+url.QueryEscape(expr), &r); err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return r
}

// rule is one as Prometheus tells of it.
type rule struct {
	file                                        string
	Name, Type, Query, Health, LastError, State string
}

// rules are all that Prometheus has.
func (d *demo) rules(t *testing.T) (all []rule) {
	t.Helper()
	var r struct {
		Data struct {
			Groups []struct {
				File  string
				Rules []rule
			}
		}
	}
	if err := get(t.Context(), d.prometheus.url+"/api/v1/rules", &r); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Data.Groups {
		for _, one := range g.Rules {
			one.file = g.File
			all = append(all, one)
		}
	}
	return all
}

// firing are the labels of an alert's instances that fire, as Prometheus tells; told as Alertmanager does.
func (d *demo) firing(t *testing.T, alert string) (all []labels) {
	t.Helper()
	for _, s := range d.query(t, fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\"}", alert)).Data.Result {
		all = append(all, s.Metric)
	}
	return all
}

func (d *demo) told(t *testing.T, alert string) (all []labels) {
	t.Helper()
	var r []struct{ Labels labels }
	filter := url.Values{"filter": {fmt.Sprintf("alertname=%q", alert)}}
	if err := get(t.Context(), d.alertmanager.url+"/api/v2/alerts?"+filter.Encode(), &r); err != nil {
		t.Fatal(err)
	}
	for _, one := range r {
		all = append(all, one.Labels)
	}
	return all
}
