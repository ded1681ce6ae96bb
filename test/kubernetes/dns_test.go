package kubernetes

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/net/dns/dnsmessage"
)

// startDNS answers for the names of services, as a cluster's DNS does for those without an address: with those of
// their pods. There is nothing here that would lead from a service's own address to them.
func (c *cluster) startDNS(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // nothing was written to it
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // it is closed
			}
			var query dnsmessage.Message
			if query.Unpack(buffer[:n]) != nil || len(query.Questions) != 1 {
				continue
			}
			if answer, err := c.resolve(t.Context(), query).Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from) // who hears nothing asks again
			}
		}
	}()
}

// resolve answers SERVICE.NAMESPACE.svc.cluster.local.
func (c *cluster) resolve(ctx context.Context, query dnsmessage.Message) *dnsmessage.Message {
	asked := query.Questions[0]
	answer := &dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true, RCode: dnsmessage.RCodeNameError},
		Questions: query.Questions,
	}
	name, is := strings.CutSuffix(asked.Name.String(), ".svc.cluster.local.")
	service, namespace, is2 := strings.Cut(name, ".")
	if !is || !is2 {
		return answer
	}
	slices, err := c.admin.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil || len(slices.Items) == 0 {
		return answer
	}
	answer.RCode = dnsmessage.RCodeSuccess
	for _, endpoint := range slices.Items[0].Endpoints {
		at, err := netip.ParseAddr(endpoint.Addresses[0])
		if err == nil && asked.Type == dnsmessage.TypeA {
			header := dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class}
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: at.As4()}})
		}
	}
	return answer
}
