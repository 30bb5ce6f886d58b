# Every target has its sentence behind two hashes; help prints them. What needs more than one line is in scripts/.

GO   := "$(CURDIR)/scripts/go"
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Replay the accident and its cure; STORE=postgres://… for another store, ARGS="--users 500 -o json" is passed on
	@$(GO) run ./cmd/onceward demo $(if $(STORE),--store '$(STORE)') $(ARGS)

.PHONY: test
test: ## Format check, vet, all tests (with -race where it works), each benchmark once; PKGS=./key/ for less
	@scripts/test

.PHONY: test/race
test/race: ## The same tests with -race, failing where the race detector does not work
	@RACE=-race scripts/test

.PHONY: test/long
test/long: ## The same tests with the long counts (10^5 random operations on each store, and so on)
	@ONCEWARD_LONG=1 TIMEOUT=$${TIMEOUT:-60m} scripts/test

.PHONY: test/crash
test/crash: ## The crash table, points × stores: SQLite by kill -9 and lost answers, memory by lost answers only
	@cd internal/crash && $(GO) test -count=1 -timeout 50s -run '^TestCrashTable' -args -matrix

.PHONY: bench
bench: ## Side by side with the hand-written minimum on the same store, ratios as x; BENCH=regexp, BENCHTIME=2s, COUNT=3
	@$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -benchtime $(or $(BENCHTIME),2s) -timeout 60m -count $(or $(COUNT),1) . ./store/memstore ./store/sqlstore ./oncehttp ./gateway

.PHONY: bench/sql
bench/sql: ## PostgreSQL and MariaDB beside the hand-written minimum; LONG=1 for tables of a million rows too
	@eval "$$(scripts/services)"; cd bench && ONCEWARD_LONG=$(LONG) $(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime $(or $(BENCHTIME),6000x) -timeout 120m -count $(or $(COUNT),1) .

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME=30s each; FUZZ=regexp for some
	@scripts/fuzz

.PHONY: lint
lint: ## Run the pinned golangci-lint on every module
	@scripts/lint

.PHONY: fmt
fmt: ## Format all Go files
	@scripts/fmt

.PHONY: cover
cover: ## Test coverage of the released module, in total and in coverage.out
	@$(GO) test -timeout 10m -coverpkg=./... -coverprofile=coverage.out $(or $(PKGS),./...)
	@$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: golden
golden: ## Rewrite the layer tables in the docs and the list of dependencies; read the difference before you commit it
	@$(GO) test ./internal/archtest/ -count=1 -update

.PHONY: build
build: ## Build bin/onceward, static
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/onceward ./cmd/onceward

.PHONY: clean
clean: ## Remove what the targets above leave behind
	@rm -rf bin coverage.out bench/*.out bench/results
