# The only entrance: .ci/run and people call these targets and nothing else.
# Only deps reaches for a package host, and the Go tool for the modules of go.mod.

export CGO_ENABLED := 1
export ONNXRUNTIME_LIB ?= $(CURDIR)/lib/libonnxruntime.$(if $(filter Darwin,$(shell uname -s)),dylib,so)

STATICCHECK := go tool -modfile=.ci/tools.mod staticcheck
PACKAGES    := ./... ./.ci/deps
TESTFLAGS   ?=
FUZZTIME    ?= 60
ROUNDS      ?= 200

.DEFAULT_GOAL := help
.PHONY: help demo test lint build fuzz torture bench bench-methods generate deps clean zoo zoo-mutants

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: deps build ## the quickstart: an answer in artifacts/quickstart/README.md
	bin/runexp run experiments/quickstart.yaml

test: deps lint ## vet, staticcheck, and the whole suite with the race detector
	RUNEXP_REQUIRE=1 go test -race -timeout 40m $(TESTFLAGS) $(PACKAGES)

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l .) && test -z "$$out" || { echo "not formatted by gofmt:" $$out; exit 1; }
	go vet $(PACKAGES)
	$(STATICCHECK) $(PACKAGES)

build: ## bin/runexp
	go build -trimpath -o bin/runexp ./cmd/runexp

fuzz: deps ## a minute of fuzzing in all, shared by every fuzz target
	.ci/fuzz $(FUZZTIME)

torture: deps ## ROUNDS (200) of kills at random moments, of a damaged store, and of hostile models
	RUNEXP_TORTURE=$(ROUNDS) RUNEXP_REQUIRE=1 go test ./cmd/runexp -run '^TestTorture' -count 1 -timeout 10h

bench: deps ## the benchmarks, five runs each; $PYTHON, or python3, is asked for PyTorch
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/testdata/shapes.py .bench
	go test -run '^$$' -bench . -skip '^Benchmark(Methods|Together)$$' -benchmem -count 5 -timeout 60m ./...

bench-methods: deps ## images/s of every method, beside bare forward passes and beside captum in $PYTHON
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/testdata/shapes.py .bench
	go test -run '^$$' -bench '^Benchmark(Methods|Together)$$' -benchtime 1x -timeout 180m ./stages/attribute

zoo: deps ## classifiers of every family, by both exporters of PyTorch, beside its derivatives; torch, torchvision, timm, transformers, onnx and onnxscript are $PYTHON's
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/zoo/zoo.py .zoo
	RUNEXP_ZOO=$(CURDIR)/.zoo go test ./stages/internal/program/zoo -run '^TestZoo$$' -count 1 -timeout 120m

zoo-mutants: deps ## a wrong derivative of any operator is seen by one of the zoo's nets; make zoo comes first
	RUNEXP_ZOO=$(CURDIR)/.zoo RUNEXP_ZOO_MUTANTS=1 go test ./stages/internal/program/zoo -run '^TestMutants$$' -count 1 -timeout 120m

generate: deps ## rewrite the files made from the code; inspect the diff
	go test ./registry -run Generated -update
	go test ./cmd/runexp -run '^TestArchitecture$$' -update
	go test ./stages/internal/frozen -update

deps: ## ONNX Runtime into lib/, with pip or npm, unless it's there
	@case "$(ONNXRUNTIME_LIB)" in "$(CURDIR)"/lib/*) go run ./.ci/deps lib;; \
	*) test -f "$(ONNXRUNTIME_LIB)" || { echo "ONNXRUNTIME_LIB names no file: $(ONNXRUNTIME_LIB)"; exit 1; };; esac

clean: ## remove what make built and fetched; the store in .runexp stays
	rm -rf bin lib
