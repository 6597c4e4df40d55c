# `make demo` and `make test` do all their own set-up on Debian and Ubuntu and
# say what they install; Go, gcc and make must be there.

GO ?= go
export GO
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 30s

.PHONY: all build demo test race invariants vet lint shaders abi nocgo fuzz bench cover clean

all: build vet

build: bin/vkomp-demo
	$(GO) build ./...

# Go's own build cache knows what is up to date.
.PHONY: bin/vkomp-demo
bin/vkomp-demo:
	$(GO) build -o $@ ./cmd/vkomp-demo

# A photograph through a graph of target tasks, compared with the host's result.
demo: bin/vkomp-demo
	scripts/setup driver
	bin/vkomp-demo run image -verify

# Everything, on lavapipe and then on SwiftShader.
test:
	scripts/setup test
	scripts/test ./...

race:
	scripts/setup test
	DRIVERS=lavapipe scripts/test -race ./...

# Allocator and presence table validated after every change.
invariants:
	$(GO) test -tags invariants ./memory ./sched

vet:
	$(GO) vet ./...

lint: vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) run $(STATICCHECK) ./...

# The embedded modules must be what their sources give.
shaders:
	scripts/setup shaders
	$(GO) generate ./...
	@changed=$$(git status --porcelain -- '*.spv'); if [ -n "$$changed" ]; then echo "the sources give other modules:"; echo "$$changed"; exit 1; fi

# Our own Vulkan declarations against the headers of libvulkan-dev.
abi:
	scripts/setup abi
	gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -Ivk vk/abicheck/abi_check.c

nocgo:
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) vet ./...

fuzz:
	scripts/fuzz $(FUZZTIME)

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

cover:
	scripts/setup test
	DRIVERS=lavapipe scripts/test -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

clean:
	rm -rf bin .cache cover.out
