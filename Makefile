# The entry point for CI and developers: .ci/run calls only these targets.
# Only deps, the packages' targets and the Go tool (for the modules of go.mod) use the network.

export CGO_ENABLED := 1
export ONNXRUNTIME_LIB ?= $(CURDIR)/lib/libonnxruntime.$(if $(filter Darwin,$(shell uname -s)),dylib,so)

STATICCHECK := go tool -modfile=.ci/tools.mod staticcheck
PACKAGES    := ./... ./.ci/cluster ./.ci/deps ./.ci/gpu-kit/... ./.ci/pack
# Only packages with goroutines of their own gain from the race detector, which costs others up to tenfold.
CONCURRENT  := ./.ci/cluster ./.ci/gpu-kit/card ./cmd/... ./pipeline/... ./registry ./stages/attribute \
	./stages/dataset ./stages/internal/lower ./stages/ort ./stages/internal/program ./stages/perturb
ZIG         := $(CURDIR)/.zig/ziglang
PORTABLE    := CC="$(ZIG)/zig cc -target x86_64-linux-gnu.2.28" GOOS=linux GOARCH=amd64 GOAMD64=v1 \
	go build -trimpath -ldflags "-s -w"
TESTFLAGS   ?=
FUZZTIME    ?= 60

.DEFAULT_GOAL := help
.PHONY: help demo test suite raced lint build portable openvino gpu-kit wheel dist test-wheel test-python test-latex browser-example test-review test-gpu full test-cluster fuzz torture bench bench-cluster bench-methods bench-metrics bench-fusion generate deps clean mutants papers zoo zoo-mutants

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: deps build ## run the quickstart; its result is artifacts/quickstart/README.md
	bin/runexp run experiments/quickstart.yaml

test: export RUNEXP_FULL = 1
test: deps lint suite ## lint, and the whole suite, with the race detector where goroutines are

suite: export ONNXRUNTIME_EP_OPENVINO ?= $(CURDIR)/lib/openvino
suite: deps openvino # all tests; of sweeps that take long, a sample, or all of them with RUNEXP_FULL=1
	RUNEXP_REQUIRE=1 go test -race -timeout 40m $(TESTFLAGS) $(CONCURRENT)
	RUNEXP_REQUIRE=1 go test -timeout 40m $(TESTFLAGS) \
		$(filter-out $(shell go list $(CONCURRENT)),$(shell go list $(PACKAGES)))

raced: # the packages that make test runs with the race detector, a line each
	@go list $(CONCURRENT)

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l .) && test -z "$$out" || { echo "not formatted by gofmt:" $$out; exit 1; }
	go vet $(PACKAGES)
	$(STATICCHECK) $(PACKAGES)

build: ## bin/runexp
	go build -trimpath -o bin/runexp ./cmd/runexp

$(ZIG)/zig:
	$(or $(PYTHON),python3) -m pip install --quiet --disable-pip-version-check --target .zig --upgrade ziglang==0.17.1

portable: $(ZIG)/zig ## dist/bin/runexp, for Linux x86-64 with glibc 2.28 or newer
	$(PORTABLE) -o dist/bin/runexp ./cmd/runexp

gpu-kit: SETS = webgpu cuda
gpu-kit: portable ## dist/gpu-kit: pieces of SETS (webgpu cuda) to send to a machine with a GPU; they measure it
	$(PORTABLE) -o dist/bin/card ./.ci/gpu-kit/card
	go run ./.ci/deps -webgpu dist/webgpu
	go run ./.ci/gpu-kit dist/bin dist/webgpu dist/gpu-kit $(SETS)

wheel: portable ## dist/runexp_xai-….whl: the command and its Python module, without ONNX Runtime
	rm -f dist/*.whl
	ZIG_FOLDER="$(ZIG)" go run ./.ci/pack wheel dist/bin/runexp dist

dist: portable ## dist/runexp_xai-….tar.gz: the command with ONNX Runtime next to it, for machines without network
	go run ./.ci/deps dist/lib
	rm -f dist/*.tar.gz
	ZIG_FOLDER="$(ZIG)" go run ./.ci/pack archive dist/bin/runexp dist/lib dist

test-wheel: wheel dist ## install the wheel into a clean environment, unpack the archive, and run the quickstart
	RUNEXP_PACKAGES="$(CURDIR)/dist" go test ./.ci/pack -run '^TestPackages$$' -count 1 -timeout 10m -v

test-python: build deps ## the module and experiments/examples/python with PyTorch, captum and Quantus, in an environment of .python
	@test -x .python/bin/python || $(or $(PYTHON),python3) -m venv --system-site-packages .python
	.python/bin/python -m pip install --quiet --disable-pip-version-check numpy pandas torch onnx onnxruntime scikit-learn \
		captum==0.9.0 quantus==0.6.0
	PATH="$(CURDIR)/.python/bin:$$PATH" RUNEXP_PYTHON=1 go test ./cmd/runexp -run '^Test(NotebookModule|PythonExamples|CompiledInPython)$$' -count 1 -v

test-latex: ## compile tables and appendices in LaTeX; needs pdflatex with booktabs, such as Debian's texlive-latex-recommended
	RUNEXP_LATEX=1 go test ./pipeline/typeset ./pipeline/appendix -run LaTeX -count 1

test-review: deps build ## the page of a review folder, in Chromium
	.ci/browser/run

browser-example: ## copy ONNX Runtime for browsers, from npm, next to the page of experiments/examples/browser
	.ci/browser/example

test-gpu: deps ## compare WebGPU with the processor, on SwiftShader, or with GPU=1 on the machine's own adapter; ALL=1: all pairs of stage and net
	.ci/gpu/run

test-cluster: ROUNDS = 3
test-cluster: deps ## ROUNDS (3) of the quickstart on a Slurm of its own, while nodes are lost and shares preempted; needs Linux and root
	.ci/cluster/run $(ROUNDS)

fuzz: deps ## FUZZTIME (60) seconds of fuzzing, divided among all fuzz targets, or FEW of them, in turns
	.ci/fuzz $(FUZZTIME)

papers: deps build ## run the experiments of experiments/papers on few images; FEW=4: four of them, in turns
	.ci/papers

torture: ROUNDS = 200
torture: deps ## ROUNDS (200) of random kills, store damage and hostile models
	RUNEXP_TORTURE=$(ROUNDS) RUNEXP_REQUIRE=1 go test ./cmd/runexp -run '^TestTorture' -count 1 -timeout 10h

bench: deps ## the benchmarks, five runs each, and PyTorch's if $PYTHON (or python3) has it
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/testdata/shapes.py .bench
	go test -run '^$$' -bench . -skip '^Benchmark(Methods|SharedForward|Metrics)$$' -benchmem -count 5 -timeout 60m ./...

bench-methods: deps ## images/s of every method, of forward passes, and of captum, pytorch-grad-cam, LXT if $PYTHON has them
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/testdata/shapes.py .bench
	go test -run '^$$' -bench '^Benchmark(Methods|SharedForward)$$' -benchtime $(or $(ROUNDS),3)x -timeout 180m ./stages/attribute

bench-metrics: deps ## images/s of metrics, of bare passes, and of PyTorch if $PYTHON has it
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/testdata/shapes.py .bench
	-$(or $(PYTHON),python3) -W ignore stages/perturb/testdata/metrics.py .bench
	go test -run '^$$' -bench '^BenchmarkMetrics$$' -benchtime 1x -timeout 60m ./stages/perturb

bench-cluster: deps ## parallel efficiency of 64 processes whose items sleep, and with one in ten of them lost: 10 minutes
	RUNEXP_BENCH_CLUSTER=1 go test ./cmd/runexp -run '^TestManyWorkers$$' -count 1 -timeout 60m -v

bench-fusion: ## measure the time of Meta-Rank's fusion of 26 cases against the number of methods, as in figure 4 of the paper
	@go test -run '^$$' -bench '^BenchmarkFuse$$' -cpu 1 -count 10 -benchtime 200ms ./stages/internal/stat | \
	awk -F'[/\t ]+' 'BEGIN {print "machine,methods,run,ms"} /^cpu: / {sub(/^cpu: */, ""); machine = $$0} \
	/^BenchmarkFuse/ {printf "%s,%d,%d,%.4f\n", machine, $$2, ++runs[$$2], $$4 / 1e6}' \
	> experiments/papers/metarank-fusion.csv
	@cat experiments/papers/metarank-fusion.csv

full: ## all checks, also those of which .ci/run makes a part, in turns; writes .ci/full.txt, which says when
	.ci/run full

mutants: deps ## check that a test notices each of some defects of every metric
	RUNEXP_MUTANTS=1 RUNEXP_REQUIRE=1 go test ./stages/internal/mutants -count 1 -timeout 120m

zoo: deps ## compare gradients of many architectures with PyTorch's; $PYTHON needs torch, torchvision, timm, transformers, onnx, onnxscript
	-$(or $(PYTHON),python3) -W ignore stages/internal/program/zoo/zoo.py .zoo
	RUNEXP_ZOO=$(CURDIR)/.zoo go test ./stages/internal/program/zoo -run '^TestZoo(Balance|Relevance)?$$' -count 1 -timeout 120m

zoo-mutants: deps ## check that the zoo detects a wrong derivative of any operator; run make zoo first
	RUNEXP_ZOO=$(CURDIR)/.zoo RUNEXP_ZOO_MUTANTS=1 go test ./stages/internal/program/zoo -run '^TestMutants$$' -count 1 -timeout 120m

generate: deps ## regenerate the files made from the code; inspect the diff
	go test ./registry -run Generated -update
	go test ./cmd/runexp -run '^TestArchitecture$$|^TestDocs|^TestPapers(Claims|Pictures|Costs)$$' -update
	go test ./stages/internal/frozen ./stages/internal/target -update

deps: ## install ONNX Runtime into lib/ with pip or npm, and NumPy for tests with pip, if missing
	@case "$(ONNXRUNTIME_LIB)" in "$(CURDIR)"/lib/*) go run ./.ci/deps lib;; \
	*) test -f "$(ONNXRUNTIME_LIB)" || { echo "ONNXRUNTIME_LIB isn't a file: $(ONNXRUNTIME_LIB)"; exit 1; };; esac
	@test -d lib/python/numpy || python3 -m pip install --quiet --disable-pip-version-check --target lib/python numpy || \
	echo "NumPy can't be installed: tests of functions in Python skip"

openvino: # OpenVINO's plugin into lib/openvino with pip, if missing, for tests in bfloat16
	@case "$(ONNXRUNTIME_EP_OPENVINO)" in "$(CURDIR)"/lib/*|"") go run ./.ci/deps -openvino lib/openvino || \
	echo "OpenVINO's plugin can't be installed: tests that need it fail";; esac

clean: ## remove built and installed files, but not the store in .runexp
	rm -rf bin lib dist .zig .python
