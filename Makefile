# `make demo` and `make test` do all their own set-up on Debian and Ubuntu and
# say what they install; Go, gcc and make must be there.

GO ?= go
export GO
# The packages of the module and those of the demo, a module of its own (see go.work).
PACKAGES = ./... ./cmd/vkomp-demo/...
# Packages whose tests use no device: they run once, and not on every driver.
PURE = ./internal/... ./memory/... ./ompt ./sched/... ./tasks/... ./timeline/... ./traits/... ./vk/spirv ./tests/order/...
# The others. The go command begins with the first, which take longest.
DEVICE_PACKAGES = ./tests . ./vk $(filter-out $(shell $(GO) list $(PURE)),$(shell $(GO) list $(PACKAGES)))
# vk's tests have queues of their own making, and need no layer that makes some.
QUEUE_PACKAGES = $(filter-out ./vk %/vk,$(DEVICE_PACKAGES))
# Packages that start no goroutine: Go's race detector has nothing to see there.
SERIAL = ./timeline/... ./traits/... ./vk/spirv ./tests/order/...
# What is drawn at random, and compared with a model of what it means.
RANDOM_TESTS = 'HistoriesMean|RandomPrograms'
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 30s

.PHONY: all build demo check test crossed stress mutations mutants race events one-processor invariants vet lint shaders abi layers layers-test vgpu page nocgo fuzz bench bench-go cover clean

all: build vet

build: bin/vkomp-demo
	$(GO) build $(PACKAGES)

# Go's own build cache knows what is up to date.
.PHONY: bin/vkomp-demo
bin/vkomp-demo:
	$(GO) build -o $@ ./cmd/vkomp-demo

# A photograph through a graph of target tasks, compared with the host's result.
demo: bin/vkomp-demo
	scripts/setup driver
	bin/vkomp-demo run image -verify

# For every edit: formatting, vet, and the tests that take no seconds, on lavapipe. Tests that use
# no device run again when the go command sees that something has changed for them.
check:
	scripts/setup test
	@unformatted=$$(gofmt -l .) || exit; if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-pure check-devices

.PHONY: check-pure check-devices
check-pure:
	$(GO) test -short ./sched $(PURE)
check-devices:
	DRIVERS=lavapipe scripts/test -short $(DEVICE_PACKAGES)

# Everything: on lavapipe with its one queue, on SwiftShader through the layer that shows several
# queues; and half a minute of stress on both. Here and below the C library keeps what the drivers free
# for what they allocate next, because otherwise page faults take a third of the time.
check test crossed race events mutations mutants vgpu: export GLIBC_TUNABLES = glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824
test: bin/vkomp-demo layers
	scripts/setup test
	DRIVERS=lavapipe scripts/test $(DEVICE_PACKAGES) ./sched $(PURE)
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-second test-second-vk
	scripts/stress short

.PHONY: test-second test-second-vk
test-second:
	DRIVERS=second LAYER=manyqueue scripts/test $(QUEUE_PACKAGES)
test-second-vk:
	DRIVERS=second scripts/test ./vk

# The other way round, without what takes seconds: lavapipe as a graphics card with the queues of an
# NVIDIA H100, whose memory the host maps and does not cache, and SwiftShader with its one queue and
# memory that the host does not map. Random histories and programs run on both as on the first. Last a
# program that sees the devices of both drivers.
crossed: layers
	scripts/setup test
	VKOMP_MANYQUEUE_FAMILIES=GCT16,T2,CT8 DRIVERS=lavapipe LAYER="discrete manyqueue" scripts/test -short $(QUEUE_PACKAGES)
	DRIVERS=swiftshader LAYER=discrete VKOMP_DISCRETE_PROFILE=nobar scripts/test -short $(QUEUE_PACKAGES)
	LAYER="discrete manyqueue" scripts/test ./tests -run $(RANDOM_TESTS)
	DRIVERS=both scripts/test -short .
	DRIVERS=both scripts/test ./cmd/vkomp-demo -run Scripts

# Foreign work between tasks, 10,000 rounds a way, 1,000 rounds of pauses, and 2,000 runtimes
# one after another; random histories and programs with memory in every other shape; then ten
# minutes of task graphs over many queues, reordered and checked: see scripts/stress.
stress: bin/vkomp-demo layers
	scripts/setup test
	scripts/test ./tests -run 'ForeignWorkBetween|RoundsOfWorkAndPauses|OpeningsLeave' -interop.rounds 10000 -pause.rounds 1000 -openings 1000
	for profile in smallbar nobar nocached integrated incoherent; do VKOMP_DISCRETE_PROFILE=$$profile LAYER="discrete manyqueue" scripts/test ./tests -run $(RANDOM_TESTS) || exit; done
	scripts/stress

# Defects of the scheduler, each of which has to show: see scripts/mutants.
mutants: layers
	scripts/setup test
	scripts/mutants

# The synchronization of recorded runs, changed piece by piece: see scripts/mutations.
mutations: bin/vkomp-demo layers
	scripts/setup test
	scripts/mutations

# Tests that take seconds run here where they are about goroutines: see vktest.LongConcurrent. Of the
# demo, what starts goroutines itself.
race:
	scripts/setup test
	DRIVERS=lavapipe scripts/test -race -short ./sched $(filter-out %/vkomp-demo,$(DEVICE_PACKAGES)) $(filter-out $(SERIAL),$(PURE))
	DRIVERS=lavapipe scripts/test -race -short ./cmd/vkomp-demo -run 'Interop|Progress'

# A tool beside every runtime of the tests, which checks the events that it hears of. Tests
# of what allocates nothing, and of no tool, are for runtimes without one.
events:
	scripts/setup test
	VKOMP_CHECK_TOOL=1 DRIVERS=lavapipe scripts/test -short . ./tests ./interop -skip 'AllocateNothing|ControlTool'

# As on a machine with one processor, where goroutines run one at a time. Go would take over results from runs
# with more of them, without -count.
one-processor:
	scripts/setup test
	GOMAXPROCS=1 DRIVERS=lavapipe scripts/test -short -count 1 -timeout 300s . ./sched ./tests ./cmd/vkomp-demo

# What has to hold of the runtime's state is checked after every change, and the order of
# locks wherever one is taken. With many queues an interop object has one to itself.
invariants: layers
	scripts/setup test
	$(GO) test -short -tags invariants -skip 'Allocates?Nothing' ./memory ./sched ./sched/allocation ./sched/order ./sched/pipeline ./sched/trace ./sched/transfer ./internal/...
	$(GO) test -short -tags invariants ./tasks -run Transition
	DRIVERS=lavapipe scripts/test -short -tags invariants . -run 'Close|Pause|Interop|Taskgroup|Associat|Pin|HostMemory|FreeOf'
	DRIVERS=lavapipe LAYER=manyqueue scripts/test -short -tags invariants . -run Interop

# Goroutines are late at random wherever they take or release a lock, so that what depends on how fast they are shows
# in a few runs, and not some day on a busy machine. For whoever changes goroutines, or a test that has several. It is no
# part of .ci/run, because it may fail by something that is older than the change.
.PHONY: delays
delays:
	scripts/setup test
	DRIVERS=lavapipe scripts/test -tags delays -short -count 1 $(DEVICE_PACKAGES) $(PURE)

vet:
	$(GO) vet $(PACKAGES)

lint: vet
	@unformatted=$$(gofmt -l .) || exit; if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) run $(STATICCHECK) $(PACKAGES)

# The embedded modules must be what their sources give.
shaders:
	scripts/setup shaders
	$(GO) generate $(PACKAGES)
	@changed=$$(git status --porcelain -- '*.spv') || exit; if [ -n "$$changed" ]; then echo "the sources give other modules:"; echo "$$changed"; exit 1; fi

# Our own Vulkan declarations against the headers of libvulkan-dev.
abi:
	scripts/setup abi
	gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -Ivk vk/abicheck/abi_check.c

# Vulkan layers that make wrong order show or calls fail, and their manifests; see
# tests/layers.
LAYER_SOURCES = tests/layers/layer.c tests/layers/map.c
# Headers made of shaders; hidden from the go tool and from the rules of the layout.
LAYER_BUILD = .cache/layers
LAYER_CFLAGS = -std=c11 -g -O2 -Wall -Wextra -Werror -fPIC -pthread -fvisibility=hidden
LAYERS = $(patsubst tests/layers/%.c,%,$(wildcard $(foreach l,manyqueue shuffle record fault discrete,tests/layers/$l.c)))
LAYER_SHADERS = $(patsubst tests/layers/%.comp,$(LAYER_BUILD)/%.spv.h,$(wildcard tests/layers/*.comp))
LAYER_TESTS = $(patsubst tests/layers/%.c,bin/layers/%,$(wildcard tests/layers/test_*.c))

manyqueue_DOES = Shows a queue as several families of several queues that only semaphores order
shuffle_DOES = Reorders commands as far as barriers and semaphores allow
record_DOES = Records what reaches the driver
fault_DOES = Makes chosen calls fail
discrete_DOES = Shows the host's memory as that of a device with its own

layers:
	scripts/setup layers
	@$(MAKE) --no-print-directory $(foreach l,$(LAYERS),bin/layers/libVkLayer_vkomp_$l.so bin/layers/$l/layer.json)

# A layer may have more files, called tests/layers/<its name>_*.c and .h. Programs
# that run meanwhile keep the library that they have.
.SECONDEXPANSION:
bin/layers/libVkLayer_vkomp_%.so: tests/layers/%.c $$(wildcard tests/layers/%_*.[ch] tests/layers/%.h) $(LAYER_SOURCES) $(wildcard tests/layers/*.h) Makefile
	@mkdir -p $(@D)
	gcc $(LAYER_CFLAGS) -shared -o $@.partial $(filter %.c,$^)
	@mv $@.partial $@

bin/layers/test_%: tests/layers/test_%.c tests/layers/program.c $(wildcard tests/layers/*.h) $(LAYER_SHADERS) Makefile
	@mkdir -p $(@D)
	gcc $(LAYER_CFLAGS) -I$(LAYER_BUILD) -o $@ $< tests/layers/program.c -lvulkan

.SECONDARY: $(LAYER_SHADERS)
$(LAYER_BUILD)/%.spv.h: tests/layers/%.comp Makefile
	@mkdir -p $(@D)
	glslangValidator -V --target-env vulkan1.2 --quiet --vn spirv_$* -o $@ $<

# A folder for each manifest: the order of the layers is that in which the loader finds
# them, along VK_LAYER_PATH, whatever VK_INSTANCE_LAYERS says.
bin/layers/%/layer.json: tests/layers/manifest Makefile
	@mkdir -p $(@D)
	tests/layers/manifest $* "$($*_DOES)" >$@

# Their own tests, C programs, on lavapipe and then on SwiftShader; and the recorded order of
# foreign work (see scripts/foreign).
layers-test: layers
	scripts/setup test
	@$(MAKE) --no-print-directory $(LAYER_TESTS)
	tests/layers/run $(LAYER_TESTS)
	scripts/foreign

# goki/vgpu on a device of ours, in a module of its own because it needs X11's headers: its
# tests, and frames that are compared with the host's. It says where they are.
vgpu:
	scripts/setup vgpu
	cd interop/vgpu && export GOWORK=off && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) generate ./...
	@changed=$$(git status --porcelain -- 'interop/vgpu/*.spv') || exit; if [ -n "$$changed" ]; then echo "the sources give other modules:"; echo "$$changed"; exit 1; fi
	GOWORK=off MODULE=interop/vgpu scripts/test ./...
	cd interop/vgpu && GOWORK=off $(GO) build -o ../../bin/vkomp-heat ./cmd/heat
	bin/vkomp-heat -verify -out bin/heat

# The pages that -report writes, opened from disk in headless Chromium, which Debian has;
# pictures of them are in bin/page.
page: bin/vkomp-demo layers
	scripts/setup page
	scripts/page

# Without cgo, and where there is no Vulkan, programs build and have the initial device.
nocgo:
	CGO_ENABLED=0 $(GO) build $(PACKAGES)
	CGO_ENABLED=0 $(GO) vet $(PACKAGES)
	CGO_ENABLED=0 GOOS=windows $(GO) vet $(PACKAGES)

fuzz:
	scripts/fuzz $(FUZZTIME)

# vkomp beside plain Vulkan on one core, where taskset can be had, what is about goroutines and deferred tasks
# on all of them, and kernels as a driver runs them that has threads of its own: see docs/benchmarks.md. The
# figures of the first two are then compared with those that are kept.
BENCHSTAT = golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCH_KEPT = cmd/vkomp-demo/testdata/bench.txt
BENCH_FLAGS ?=
ONE_CORE = $(shell command -v taskset >/dev/null && echo taskset -c 0)
bench: bin/vkomp-demo
	scripts/setup driver
	LP_NUM_THREADS=0 $(ONE_CORE) bin/vkomp-demo bench -gobench bin/bench-one.txt $(BENCH_FLAGS)
	LP_NUM_THREADS=0 bin/vkomp-demo bench -rows sync,goroutines -gobench bin/bench-all.txt $(BENCH_FLAGS)
	LP_NUM_THREADS=0 bin/vkomp-demo bench -rows chain,chain2,independent,fan,stencil $(BENCH_FLAGS)
	bin/vkomp-demo bench -rows chain,independent,fan,stencil,replay $(BENCH_FLAGS)
	cat bin/bench-one.txt bin/bench-all.txt >bin/bench.txt
	$(GO) run $(BENCHSTAT) kept=$(BENCH_KEPT) now=bin/bench.txt

# The benchmarks of packages, without plain Vulkan.
bench-go:
	$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

cover:
	scripts/setup test
	DRIVERS=lavapipe scripts/test -coverpkg=./...,./cmd/vkomp-demo/... -coverprofile=cover.out $(PACKAGES)
	$(GO) tool cover -func=cover.out | tail -n 1

clean:
	rm -rf bin .cache cover.out
