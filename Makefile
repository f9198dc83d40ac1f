# Quorate. Everything here runs from a fresh clone with Go, Docker and make; what else is needed is installed into bin or
# built into .cache.

SHELL := bash -o pipefail
.DEFAULT_GOAL := help

IMAGE ?= quorate:dev
FOR   ?= 30m

CONTROLLER_GEN_VERSION := v0.23.0
GOLANGCI_LINT_VERSION  := v2.15.0

CONTROLLER_GEN := bin/controller-gen-$(CONTROLLER_GEN_VERSION)/controller-gen
GOLANGCI_LINT  := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##### Try it

.PHONY: demo demo-clean
demo: ## Make a kind cluster, install Quorate, run an etcd cluster and use it
	go run ./e2e/demo
demo-clean: ## Remove all that the demo made
	go run ./e2e/demo --clean

.PHONY: image
image: ## Build the image of the operator (IMAGE=quorate:dev)
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags='-s -w' -o bin/image/quorate ./cmd/quorate
	docker build --tag $(IMAGE) --file cmd/quorate/Dockerfile bin/image

##### Change it

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate from the API types: deepcopy, CRD, apply-configurations
	$(CONTROLLER_GEN) object crd:crdVersions=v1 applyconfiguration paths=./api/... output:crd:artifacts:config=templates/install/crd

# Compares before and after instead of asking git, so that it is right on a tree with uncommitted changes too.
checksums = find api templates/install/crd -type f | LC_ALL=C sort | xargs cksum

.PHONY: verify
verify: $(CONTROLLER_GEN) ## Check that generated files, formatting and go.mod are current
	@$(checksums) > bin/generated
	@$(MAKE) --no-print-directory generate
	@$(checksums) | diff bin/generated - || { echo 'Generated files were not current. They are now: commit them.'; exit 1; }
	@unformatted=$$(gofmt -l api cmd e2e membership reconcile render templates) && \
		test -z "$$unformatted" || { echo "Not formatted (gofmt -w): $$unformatted"; exit 1; }
	go mod tidy -diff

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters, import rules among them
	$(GOLANGCI_LINT) run ./...

##### Test it

.PHONY: test
test: verify lint test-unit test-env e2e ## Run all checks and tests

.PHONY: test-unit
test-unit: ## Tests that need nothing (a minute)
	go test ./...

.PHONY: explore
explore: ## Explore the planner's states in the large bounds (many minutes)
	go test ./membership -run Explore -explore.full -timeout 3h -v

.PHONY: test-env
test-env: ## Tests against a real API server and real etcd processes
	assets=$$(go run ./e2e/node/quorate-kind assets) && \
		KUBEBUILDER_ASSETS="$$assets" go test -tags env -timeout 60m -parallel 8 ./reconcile/... ./e2e/hostlet/...
	go test -tags env -run "^($$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' membership/*_env_test.go | paste -sd '|'))$$" ./membership

.PHONY: record
record: ## Write what this code leaves in an API server, for later releases to take over (RELEASE=name)
	$(if $(RELEASE),,$(error say RELEASE=name))
	assets=$$(go run ./e2e/node/quorate-kind assets) && cd reconcile && \
		KUBEBUILDER_ASSETS="$$assets" go test -tags env -run '^TestRecord$$' -record=$(RELEASE)
	go test ./reconcile -run '^Test(PreviousStays|RenderedOtherwise)$$'

.PHONY: chaos
chaos: ## Disturb the operator at everything it does, and walk at random, for a while (FOR=30m)
	assets=$$(go run ./e2e/node/quorate-kind assets) && cd reconcile && \
		KUBEBUILDER_ASSETS="$$assets" go test -tags env -timeout 0 -parallel 8 -run '^TestChaos$$' -chaos.for=$(FOR)

.PHONY: e2e
e2e: ## Tests on a kind cluster
	go test -tags e2e -count 1 -run '^TestPull$$' ./e2e/node
	go test -tags e2e -count 1 -timeout 60m -parallel 5 -v -skip '^Test(Bench|Nodes)' ./e2e
	go test -tags e2e -count 1 -timeout 30m -v -run '^TestNodes' ./e2e -workers 4

.PHONY: bench
bench: ## Measure against hand-written manifests on a kind cluster
	go test -tags e2e -count 1 -timeout 2h -v -run '^TestBench' ./e2e

##### Tools, each in a directory of its version

$(CONTROLLER_GEN):
	GOBIN=$(CURDIR)/$(@D) go install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
