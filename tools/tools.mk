# What the Makefile runs that is not this repository's: built once, outside the clone, for each version pinned here.

# The tools are built once for each version of tools/go.mod and tools/go.sum.
TOOLS := $(CACHE)/tools
PINS := $(shell cat tools/go.mod tools/go.sum | cksum | cut -d ' ' -f 1)
GOLANGCI := $(TOOLS)/golangci-lint-$(PINS)

# Prometheus and what belongs to it, of tools/prometheus.
PROM_PINS := $(shell cat tools/prometheus/go.mod tools/prometheus/go.sum | cksum | cut -d ' ' -f 1)
PROMETHEUS := $(TOOLS)/prometheus-$(PROM_PINS)
PROMTOOL := $(TOOLS)/promtool-$(PROM_PINS)
PINT := $(TOOLS)/pint-$(PROM_PINS)
ALERTMANAGER := $(TOOLS)/alertmanager-$(shell cat tools/alertmanager/go.mod tools/alertmanager/go.sum | cksum | cut -d ' ' -f 1)

# Helm 3 and 4, and what runs the chart's suites. Helm 3 thinks it talks to a Kubernetes as old as this unless it is
# told: the chart is tried without a cluster.
HELM_PINS := $(shell cat tools/helm/go.mod tools/helm/go.sum | cksum | cut -d ' ' -f 1)
HELM := $(TOOLS)/helm-$(HELM_PINS)
HELM_FLAGS := $(foreach package,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=36)
HELM4 := $(TOOLS)/helm4-$(HELM_PINS)
HELM_UNITTEST := $(TOOLS)/helm-unittest-$(HELM_PINS)

# What checks its objects, and Prometheus' operator with its kinds, which are in its module and not in its binary.
KUBECONFORM := $(TOOLS)/kubeconform-$(shell cat tools/kubeconform/go.mod tools/kubeconform/go.sum | cksum | cut -d ' ' -f 1)
OPERATOR := $(TOOLS)/operator-$(shell cat tools/operator/go.mod tools/operator/go.sum | cksum | cut -d ' ' -f 1)
OPERATOR_CRDS := $(OPERATOR)-crds

# Kubernetes' own programs, of tools/kubernetes.
KUBE_PINS := $(shell cat tools/kubernetes/go.mod tools/kubernetes/go.sum | cksum | cut -d ' ' -f 1)
KUBE_APISERVER := $(TOOLS)/kube-apiserver-$(KUBE_PINS)
KUBE_CONTROLLER_MANAGER := $(TOOLS)/kube-controller-manager-$(KUBE_PINS)
KUBE_SCHEDULER := $(TOOLS)/kube-scheduler-$(KUBE_PINS)
KUBELET := $(TOOLS)/kubelet-$(KUBE_PINS)
KUBECTL := $(TOOLS)/kubectl-$(KUBE_PINS)
KUBERNETES := $(KUBE_APISERVER) $(KUBE_CONTROLLER_MANAGER) $(KUBE_SCHEDULER) $(KUBELET) $(KUBECTL)

# What makes a release, and the C library its binaries are linked with.
GORELEASER := $(TOOLS)/goreleaser-$(shell cat tools/goreleaser/go.mod tools/goreleaser/go.sum | cksum | cut -d ' ' -f 1)
CYCLONEDX := $(TOOLS)/cyclonedx-gomod-$(shell cat tools/sbom/go.mod tools/sbom/go.sum | cksum | cut -d ' ' -f 1)
GLIBC := $(CACHE)/glibc-$(shell cat tools/glibc/packages tools/glibc/fetch | cksum | cut -d ' ' -f 1)
# goreleaser wants to know where the repository is published, which a clone of a clone does not.
RELEASE = GLIBC=$(GLIBC) GLIBC_CC="$(CURDIR)/tools/glibc/cc" CYCLONEDX=$(CYCLONEDX) \
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/gpumeter/gpumeter

# The oldest Debian there is, in which the packages are tried.
DEBIAN := $(CACHE)/debian-11-1.tar

# What tests run.
TESTED := $(PROMTOOL) $(PROMETHEUS) $(PINT) $(ALERTMANAGER) $(HELM) $(HELM4) $(HELM_UNITTEST) $(KUBECONFORM) $(OPERATOR) $(OPERATOR_CRDS) $(KUBERNETES)

# They discover targets in Kubernetes alone: without remove_all_sd they would bring every cloud's library.
$(PROMETHEUS) $(PROMTOOL) $(PINT): $(TOOLS)/%-$(PROM_PINS):
	mkdir -p $(TOOLS)
	cd tools/prometheus && go build -tags remove_all_sd,enable_kubernetes_sd -trimpath -ldflags '-s -w' -o $@ $$(go list tool | grep '/$*$$')

$(ALERTMANAGER):
	mkdir -p $(TOOLS)
	cd tools/alertmanager && go build -trimpath -ldflags '-s -w' -o $@ github.com/prometheus/alertmanager/cmd/alertmanager

$(HELM):
	mkdir -p $(TOOLS)
	cd tools/helm && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(HELM_FLAGS)' -o $@ helm.sh/helm/v3/cmd/helm

$(KUBECONFORM):
	mkdir -p $(TOOLS)
	cd tools/kubeconform && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/yannh/kubeconform/cmd/kubeconform

$(OPERATOR):
	mkdir -p $(TOOLS)
	cd tools/operator && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/prometheus-operator/prometheus-operator/cmd/operator

$(OPERATOR_CRDS): $(OPERATOR)
	rm -rf $@.new
	cd tools/operator && go mod download github.com/prometheus-operator/prometheus-operator && \
		cp -r "$$(go list -m -f '{{.Dir}}' github.com/prometheus-operator/prometheus-operator)/example/prometheus-operator-crd" $@.new
	chmod -R u+w $@.new
	mv $@.new $@

$(HELM4):
	mkdir -p $(TOOLS)
	cd tools/helm && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ helm.sh/helm/v4/cmd/helm

$(HELM_UNITTEST):
	mkdir -p $(TOOLS)
	cd tools/helm && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/helm-unittest/helm-unittest/cmd/helm-unittest

$(GOLANGCI):
	mkdir -p $(TOOLS)
	cd tools && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(KUBERNETES): $(TOOLS)/%-$(KUBE_PINS):
	mkdir -p $(TOOLS)
	cd tools/kubernetes && version=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && \
		CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o $@ k8s.io/kubernetes/cmd/$*

$(GORELEASER):
	mkdir -p $(TOOLS)
	cd tools/goreleaser && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/goreleaser/goreleaser/v2

$(CYCLONEDX):
	mkdir -p $(TOOLS)
	cd tools/sbom && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(GLIBC):
	tools/glibc/fetch $@

$(DEBIAN):
	mmdebstrap --quiet --variant=minbase --include=systemd-sysv bullseye $@.tmp.tar http://deb.debian.org/debian
	mv $@.tmp.tar $@
