# Quorate. Everything here runs from a fresh clone with Go, Docker and make; what else is needed is installed into bin or
# built into .cache.

SHELL := bash -o pipefail
.DEFAULT_GOAL := help

# Everything is compiled as the operator is, so that tests, linters, images and the API server of tests share what the compiler has made. Only
# the race detector needs cgo.
export CGO_ENABLED := 0
export GOFLAGS     := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

sources   := module.go api cmd crd docs e2e membership reconcile render snapshot templates
formatted  = unformatted=$$(gofmt -l $(sources)) && test -z "$$unformatted" || { echo "Not formatted (gofmt -w): $$unformatted"; exit 1; }; \
	find $(sources) -name '*.go' ! -name 'zz_generated*' ! -path '*/applyconfiguration/*' -exec awk '{ gsub(/\t/, "    ") } \
		length > 100 && /^ *\/\/ / && !/^ *\/\/ \+/ { print FILENAME ":" FNR ": a comment of more than 100 columns"; bad = 1 } END { exit bad }' {} +

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
demo: ## Make a kind cluster, install Quorate, run an etcd cluster, back it up, lose it and restore it
	go run ./e2e/demo
demo-clean: ## Remove all that the demo made
	go run ./e2e/demo --clean

# What is changed outside of the cache, Docker's images and the clusters is said, and at a terminal asked, before anything else is done. It is
# written down in the cache (e2e/node/host.go). A make within make has been asked already (QUORATE_HOST=asked).
.PHONY: host host-image host-clean
host host-image:
	@$(if $(QUORATE_HOST),,go run ./e2e/node/quorate-kind host $(if $(filter host-image,$@),--image))
host-clean: ## Undo what the demo and the tests have changed of the machine itself, and nothing else
	go run ./e2e/node/quorate-kind host-clean

.PHONY: image
image: ## Build the image of the operator (IMAGE=quorate:dev)
	GOOS=linux go build -ldflags='-s -w' -o bin/image/quorate ./cmd/quorate
	docker build --tag $(IMAGE) --file cmd/quorate/Dockerfile bin/image

##### Change it

.PHONY: generate
generate: generate-api ## Generate from API types, flags and rules: deepcopy, CRD, apply-configurations, docs/reference
	go test ./api/v1alpha1 ./cmd/quorate ./membership -run '^TestReference' -update
.PHONY: generate-api
generate-api: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object crd:crdVersions=v1 applyconfiguration paths=./api/... output:crd:artifacts:config=templates/install/crd

# Compares before and after instead of asking git, so that it is right on a tree with uncommitted changes too.
checksums = find api templates/install/crd -type f | LC_ALL=C sort | xargs cksum

.PHONY: verify
verify: $(CONTROLLER_GEN) ## Check that generated files, formatting and go.mod are current
	@$(checksums) > bin/generated
	@$(MAKE) --no-print-directory generate-api # the tests compare docs/reference
	@$(checksums) | diff bin/generated - || { echo 'Generated files were not current. They are now: commit them.'; exit 1; }
	@$(formatted)
	go mod tidy -diff

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters, import rules among them
	$(GOLANGCI_LINT) run ./...

##### Test it

# Each layer is run by e2e/layer, which says what it cost, and fails where no test ran.
LAYERS := bin/layers.json
layer   = go run ./e2e/layer -record $(or $(RECORD),$(LAYERS)) $(CODE:%=-code %) -name

# The API server and the etcds of tests; what a registry does not give is built, once for a machine.
assets  = assets=$$(go run ./e2e/node/quorate-kind assets) && export KUBEBUILDER_ASSETS="$$assets"
# An operator, an API server and real etcds take turns. Six at once kept two fast processors at work for 58 % of the time, and slow ones for 98 %;
# twelve at once had more work than slow ones do: requests took seconds, and tests ran out of time. So the machine is measured
# (e2e/layer/parallel.go). The linters vet all files, under every tag (-vet=off).
env     = go test -vet=off -tags env -count=1
at_once = -parallel $$(go run ./e2e/layer -parallel)
kind    = go test -vet=off -tags e2e -count=1 -timeout 90m -parallel 3 -v -skip '^Test(Bench|Oldest)' ./e2e -workers 3
# Of package membership, `make test-unit` runs what needs no etcd.
no_etcd = Explore|Ring|.*Mutants|ChangePacks
# What runs under the race detector; the exploration is left to test-long, because it takes many times as long there.
raced   = ./api/... ./cmd/... ./reconcile/... ./render/... ./snapshot

.PHONY: test-fast
test-fast: ## What to run before every commit: format, vet, unit tests, six stories on a real API server (3 minutes)
	@rm -f $(LAYERS)
	@$(formatted)
	@$(layer) vet -- go vet -tags env,e2e ./...
	@$(layer) unit -- go test ./...
	@$(assets) && $(layer) smoke -- $(env) $(at_once) -timeout 10m -run '^TestSmoke$$' ./reconcile
	@go run ./e2e/layer -summary $(LAYERS)

# A layer that fails does not keep the others from running.
.PHONY: test
test: host ## All the proof that decides: what CI runs (25 minutes; 50 on a machine that has nothing yet)
	@rm -f $(LAYERS)
	@$(MAKE) --no-print-directory --keep-going QUORATE_HOST=asked test-verify test-lint test-rest test-race test-env test-lost test-hostile test-pull test-kind; failed=$$?; \
		go run ./e2e/layer -summary -layers "verify lint unit race env lost hostile pull kind" $(LAYERS) || failed=1; exit $$failed

.PHONY: test-verify test-lint
test-verify:
	@$(layer) verify -- $(MAKE) --no-print-directory verify
test-lint:
	@$(layer) lint -- $(MAKE) --no-print-directory lint

.PHONY: test-unit
test-unit: ## Tests that need nothing
	@$(layer) unit -- go test ./...

# Every package that test-race does not run.
# Both collect garbage more seldom: of ./membership it took 10 of 79 seconds of the processors, of ./reconcile under the race detector 6 of
# 59 (2026-11-26).
test-rest test-race: export GOGC = 400

.PHONY: test-rest
test-rest:
	@packages=$$(go list ./... | grep -vxF "$$(go list $(raced))") && $(layer) unit -- go test $$packages

.PHONY: test-race
test-race: ## Unit tests of the operator under the race detector
	@$(layer) race -- env CGO_ENABLED=1 go test -vet=off -race -count=1 $(raced)

# The node image is needed last: where it has to be built, that goes on behind these tests. The stories of TestSmoke are left to
# test-fast and test-long: TestCrash plays them before it disturbs them.
.PHONY: test-env
test-env: host-image ## Tests against a real API server and real etcd processes
	@mkdir -p bin; $(assets) || exit 1; nice -n 10 go run ./e2e/node/quorate-kind image > bin/node-image.log 2>&1 & \
		$(layer) env -- $(env) $(at_once) -timeout 60m -skip '^Test(Smoke$$|$(no_etcd))' ./api/v1alpha1 ./reconcile ./reconcile/backup ./e2e/hostlet/... ./membership ./snapshot ./cmd/...

# Some of 40 clusters are on lost nodes; in the long run, of 200.
lost = $(layer) lost -- go test -tags e2e -count=1 -v -run '^TestLostNodesBesideHealthy$$' ./e2e/footprint
.PHONY: test-lost
test-lost:
	@$(lost) -of 40

# Some of 40 clusters have images, annotations and Pods that say anything; in the long run, of 200 and for an hour.
hostile = $(layer) hostile -- go test -tags e2e -count=1 -timeout 2h -v -run '^TestHostileBesideHealthy$$' ./e2e/footprint
.PHONY: test-hostile
test-hostile: ## Healthy clusters beside hostile ones, and beside some on lost nodes
	@$(hostile) -of 40 -for 1m

.PHONY: test-pull test-kind e2e
test-pull:
	@$(layer) pull -- go test -tags e2e -count=1 -run '^TestPull$$' ./e2e/node
test-kind: host
	@$(layer) kind -- $(kind)
e2e: test-pull test-kind ## Tests on a kind cluster

# A list that cannot be made, or is empty, fails: no minor is left out in silence.
.PHONY: test-minors test-oldest
test-minors: ## The stories of TestSmoke on an API server of every Kubernetes that is claimed
	@set -e; minors=$$(go run ./e2e/node/quorate-kind minors); test -n "$$minors"; \
	for minor in $$minors; do \
		assets=$$(go run ./e2e/node/quorate-kind assets --kubernetes $$minor); \
		KUBEBUILDER_ASSETS="$$assets" $(layer) kubernetes-$$minor -- $(env) $(at_once) -timeout 10m -run '^TestSmoke$$' ./reconcile -kubernetes $$minor; \
	done
test-oldest: host ## On a kind cluster of the oldest Kubernetes that is claimed
	@minors=$$(go run ./e2e/node/quorate-kind minors) && \
		$(layer) oldest -- go test -tags e2e -count=1 -timeout 30m -v -run '^TestOldest$$' ./e2e -kubernetes $${minors%%$$'\n'*}

##### Test it for hours

# Every layer of the long run leaves its figures in a file. A run that was interrupted goes on with the layers that have none, and
# within the plans of TestChaos where it was. Code that differs has its own files; documents that tests read for links and names alone do
# not count.
# docs/reliability.jsonl has the last figures of every layer, each with the code that it tested: where the whole takes longer than a
# machine can be had, `make test-long ONLY="explore chaos-walks"` runs these.
unread    = ':!docs/reliability.md' ':!docs/reliability.jsonl' ':!docs/benchmarks.md' ':!docs/kubernetes.md' ':!CONTRIBUTING.md'
revision  = $(shell set -o pipefail; { git ls-files -s -- $(unread) && git diff HEAD -- $(unread) && \
	git ls-files -o --exclude-standard -z -- $(unread) | xargs -0 -r cksum; } | git hash-object --stdin | cut -c1-12)
REVISION  = $(or $(revision),$(error git does not tell which code this is))
SEED      = $(shell printf '%d' 0x$(shell echo $(REVISION) | cut -c1-7))
CACHE     = $(or $(QUORATE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quorate)
LONG      = $(CACHE)/long/$(REVISION)
CHAOS    := members changes data blind turned walks recovery
LONG_RUN := verify lint unit explore race env etcd race-env minors lost hostile pull kind oldest fuzz $(CHAOS:%=chaos-%)
ONLY     := $(LONG_RUN)

.PHONY: test-long
test-long: host ## Everything there is, seeded by the code; hours, and it goes on where it was interrupted (ONLY="explore chaos-walks")
	@mkdir -p $(LONG)
	@$(MAKE) --no-print-directory --keep-going QUORATE_HOST=asked $(ONLY:%=$(LONG)/%.json); failed=$$?; shopt -s nullglob; \
		go run ./e2e/layer -summary -layers "$(ONLY)" -ledger docs/reliability.jsonl -into docs/reliability.md \
			$(foreach l,$(ONLY),$(LONG)/$(l).json*) || failed=1; exit $$failed

# A layer that fails leaves its figures as well, but not under its name: it is run again. Figures belong to the code of the beginning.
$(LONG)/%.json:
	@rm -f $@.failed
	@$(MAKE) --no-print-directory long-$* RECORD=$@.failed LONG=$(LONG) SEED=$(SEED) CODE="$$(git rev-parse --short HEAD)$$(git diff --quiet HEAD -- $(unread) || echo -dirty)"
	@test "$$($(MAKE) -s --no-print-directory revision)" = $(notdir $(LONG)) || { echo "The code has changed while $* ran: run it again."; exit 1; }
	@mv $@.failed $@

.PHONY: revision
revision: # of the code
	@echo $(REVISION)

long-verify: test-verify
long-lint: test-lint
long-unit:
	@$(layer) unit -- go test -count=1 ./...
long-pull: test-pull
long-lost:
	@$(lost) -of 200
long-hostile:
	@$(hostile) -of 200 -for 1h
# FOR as a person gives it is for how long chaos goes on.
long-fuzz:
	@$(MAKE) --no-print-directory fuzz FOR=1m
long-explore: explore
long-minors: test-minors
long-oldest: test-oldest
long-race:
	@$(layer) race -- env CGO_ENABLED=1 go test -race -count=1 -timeout 60m ./...
long-env:
	@$(assets) && $(layer) env -- $(env) $(at_once) -timeout 2h -skip '^Test(Crash|Turned|Walk|Recovery)$$' ./reconcile -long -seed $(SEED)
long-etcd:
	@$(assets) && $(layer) etcd -- $(env) $(at_once) -timeout 30m ./api/v1alpha1 ./reconcile/backup ./e2e/hostlet/... ./cmd/... && \
		$(layer) etcd-minors -- $(env) $(at_once) -timeout 30m -skip '^Test($(no_etcd))' ./membership ./snapshot -long -seed $(SEED)
long-race-env:
	@$(assets) && $(layer) race-env -- env CGO_ENABLED=1 $(env) -parallel 6 -race -timeout 2h ./reconcile -seed $(SEED)
long-kind:
	@$(layer) kind -- $(kind) -long -seed $(SEED)
# Plans of TestChaos wait more than they work: six at a time kept two processors at work for 50 % of the time (2026-11-28).
long-chaos-%:
	@$(assets) && $(layer) chaos-$* -- $(env) -parallel 10 -timeout 0 -run '^TestChaos$$' ./reconcile -chaos.part $* -chaos.ledger $(LONG)/chaos-$*.ledger -seed $(SEED)

.PHONY: explore
explore: ## Explore the planner's states in the large bounds
	@$(layer) explore -- go test ./membership -run '^TestExplore' -explore.full -timeout 3h

.PHONY: chaos
chaos: ## Disturb the operator at everything it does, and walk at random, for a while (FOR=30m)
	@$(assets) && $(layer) chaos -- $(env) -parallel 10 -timeout 0 -run '^TestChaos$$' ./reconcile -chaos.for=$(FOR)

# A target that fails does not keep the others from running. That there are none is a failure.
.PHONY: fuzz
fuzz: ## Feed each fuzz target for a while with what it likes (FOR=1m)
	@targets=$$(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z]*' $(sources) | sed 's|/[^/]*:func |:|' | sort) && test -n "$$targets" || exit 1; \
	failed=0; for target in $$targets; do \
		$(layer) fuzz-$${target#*:} -- go test -vet=off ./$${target%:*} -run "^$${target#*:}\$$" -fuzz "^$${target#*:}\$$" -fuzztime $(FOR) || failed=1; \
	done; exit $$failed

.PHONY: bench
bench: host ## Measure against hand-written manifests on a kind cluster
	go test -tags e2e -count 1 -timeout 2h -v -run '^TestBench' ./e2e
	go test -tags e2e -count 1 -timeout 3h -v -run '^TestBench' ./e2e/footprint -clusters 100,1000,10000

.PHONY: record
record: ## Write what this code leaves in an API server, for later releases to take over (RELEASE=name)
	$(if $(RELEASE),,$(error say RELEASE=name))
	$(assets) && cd reconcile && go test -tags env -run '^TestRecord$$' -record=$(RELEASE)
	go test ./reconcile -run '^Test(PreviousStays|RenderedOtherwise)$$'

##### Tools, each in a directory of its version

$(CONTROLLER_GEN):
	GOBIN=$(CURDIR)/$(@D) go install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
