# make help lists what can be done here.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where built tools are kept, outside the clone, so that a fresh clone finds them again.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gpumeter

# go-nvml's own code calls functions its header marks deprecated: pages of warnings otherwise.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

# cgo compiles in TMPDIR: a stray nvml.h in the machine's would be found before go-nvml's.
export TMPDIR := $(CACHE)/tmp
$(shell mkdir -p "$(TMPDIR)")

include tools/tools.mk

VERSION := $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION)) $(if $(REVISION),-X main.revision=$(REVISION))

# More flags, from the command line: make test TESTFLAGS=-v, make run ARGS="--log.level=debug".
BINARY ?= bin/gpumeter

# What make quick tests: all but the folders below test/, which run built programs.
QUICK := . ./exporter/... ./gen/... ./spell/... ./test

.PHONY: help generate manifests check quick fmt vet lint test test-gpu budget soak e2e-kubernetes e2e-prometheus e2e-recovery e2e-packages bench bench-fleet fuzz run demo build packages tools

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

generate: ## Write every generated file anew from spec/.
	go generate ./...

manifests: $(HELM) $(HELM4) ## Write manifests/ anew, which is the chart for those without Helm.
	GPUMETER_HELM=$(HELM) GPUMETER_HELM4=$(HELM4) go test ./test/chart -run '^TestManifests$$' -update

check: ## Everything that must hold: generated files, format, vet, lint, tests.
	go run ./gen -check
	$(MAKE) --no-print-directory fmt vet lint test

quick: ## Two minutes: generated files, format, vet, house rules, and the tests that do not take long.
	go run ./gen -check
	$(MAKE) --no-print-directory fmt
	go vet ./...
	go test -short $(TESTFLAGS) $(QUICK)

fmt: ## Fail when a Go file is not gofmt'ed.
	@bad="$$(gofmt -l .)"; if [ -n "$$bad" ]; then echo "not gofmt'ed:" $$bad; exit 1; fi

vet: ## Run go vet, with cgo and without.
	go vet ./...
	CGO_ENABLED=0 go vet ./...
	go vet -tags gpu ./test/gpu

lint: $(GOLANGCI) ## Run golangci-lint at its pinned version.
	$(GOLANGCI) run
	cd test/kubernetes && $(GOLANGCI) run
	cd test/prometheus && $(GOLANGCI) run
	cd test/packaging && $(GOLANGCI) run

test: $(PROMTOOL) $(PROMETHEUS) $(ALERTMANAGER) $(PINT) $(HELM) $(HELM4) $(HELM_UNITTEST) ## Run all tests with the race detector; needs no GPU.
	GPUMETER_PROMTOOL=$(PROMTOOL) GPUMETER_PROMETHEUS=$(PROMETHEUS) GPUMETER_ALERTMANAGER=$(ALERTMANAGER) GPUMETER_PINT=$(PINT) \
		GPUMETER_HELM=$(HELM) GPUMETER_HELM4=$(HELM4) GPUMETER_HELM_UNITTEST=$(HELM_UNITTEST) \
		go test -race $(TESTFLAGS) ./...

test-gpu: build ## On a machine with an NVIDIA GPU: compare every value with nvidia-smi, idle and under load.
	GPUMETER_BINARY="$(CURDIR)/bin/gpumeter" go test -tags gpu -count=1 -v -timeout 30m -run '^TestGPU$$' ./test/gpu

budget: ## Measure the memory of 8 GPUs and 100 pods that churn over ten minutes, and the size of the binary.
	GPUMETER_BUDGET_TIME=10m go test -count=1 -v -timeout 30m $(TESTFLAGS) ./test/budget

soak: ## Scrape the binary five times a second for SOAK (30m); memory, goroutines and descriptors must not grow.
	GPUMETER_SOAK_TIME=$(or $(SOAK),30m) go test -count=1 -v -timeout 2h $(TESTFLAGS) ./test/soak

e2e-kubernetes: build ## As root on Linux: run in a real cluster, whose programs are built once (10 minutes).
	test/kubernetes/prepare $(MAKE) --no-print-directory $(KUBERNETES) $(HELM) $(HELM4) $(KUBECONFORM) $(OPERATOR_CRDS) $(PROMETHEUS)
	cd test/kubernetes && GPUMETER_BINARY="$(CURDIR)/bin/gpumeter" GPUMETER_KUBE_APISERVER=$(KUBE_APISERVER) \
		GPUMETER_KUBE_CONTROLLER_MANAGER=$(KUBE_CONTROLLER_MANAGER) GPUMETER_KUBE_SCHEDULER=$(KUBE_SCHEDULER) \
		GPUMETER_KUBELET=$(KUBELET) GPUMETER_KUBECTL=$(KUBECTL) GPUMETER_HELM=$(HELM) GPUMETER_HELM4=$(HELM4) GPUMETER_KUBECONFORM=$(KUBECONFORM) \
		GPUMETER_OPERATOR_CRDS=$(OPERATOR_CRDS) GPUMETER_OPERATOR=$(OPERATOR) GPUMETER_PROMETHEUS=$(PROMETHEUS) go test -count=1 -v -timeout 20m $(TESTFLAGS) ./...

e2e-prometheus: build ## Run the rules in Prometheus' own rule manager and database.
	cd test/prometheus && GPUMETER_BINARY="$(CURDIR)/bin/gpumeter" go test -count=1 -parallel 8 -timeout 20m $(TESTFLAGS) ./... # they mostly wait

e2e-recovery: ## Scrape each second while one of 8 GPUs is lost for five minutes (6 minutes, mostly waiting).
	GPUMETER_RECOVERY_SCRAPES=320 go test -count=1 -timeout 20m -run '^TestRecovery_' $(TESTFLAGS) ./test/e2e

e2e-packages: packages $(DEBIAN) ## As root on Linux: install, boot, upgrade and remove the packages, and build them again to the same bytes.
	cd test/packaging && GPUMETER_PACKAGES="$(CURDIR)/dist" GPUMETER_DEBIAN=$(DEBIAN) GLIBC=$(GLIBC) go test -count=1 -v -timeout 30m $(TESTFLAGS) ./...

bench: ## Run all benchmarks and print one table: each figure, and what others take against it.
	@go test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./... | tee "$(TMPDIR)/bench.txt" | go run ./test/ratios

bench-fleet: build ## Have Prometheus evaluate all rules, and count what dashboards read, over 10,000 simulated GPUs (5 minutes).
	cd test/prometheus && GPUMETER_BINARY="$(CURDIR)/bin/gpumeter" go test -run '^$$' -bench . -benchtime 1x -timeout 30m $(BENCHFLAGS) .

# A number of inputs, and not a time: at the end of a time the fuzzer may fail for nothing (golang/go#75804).
fuzz: ## Run each fuzz target with 5,000 inputs.
	@go test -list '^Fuzz' ./... >"$(TMPDIR)/fuzz.txt"
	@awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print name[i], $$2; n = 0 }' "$(TMPDIR)/fuzz.txt" | \
		while read -r name package; do go test -run '^$$' -fuzz "^$$name\$$" -fuzztime 5000x "$$package"; done

run: build ## Build, and serve this machine, or a simulated node where it has no accelerator.
	bin/gpumeter serve --simulate-if-none $(ARGS)

demo: build $(PROMETHEUS) $(ALERTMANAGER) ## Simulate a cluster, with Prometheus, its rules, Alertmanager, and faults on request.
	go build -o bin/demo ./test/demo
	bin/demo --prometheus $(PROMETHEUS) --alertmanager $(ALERTMANAGER) $(ARGS)

build: ## Build bin/gpumeter, stripped.
	go build -trimpath -ldflags '$(LDFLAGS)' -o $(BINARY) ./exporter/cmd/gpumeter

tools: $(TESTED) ## Build what is pinned in tools/ for the tests: once, 20 minutes.

packages: $(GORELEASER) $(CYCLONEDX) $(GLIBC) ## Build what a release has, but the image, into dist/: archives, deb, rpm, bills of materials, checksums.
	$(RELEASE) $(GORELEASER) release --snapshot --clean --skip=docker --parallelism 1
