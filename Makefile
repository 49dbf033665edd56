# memtrace. `make build` needs Go alone; the other targets install the Debian packages
# they miss (scripts/install-packages).

GO     ?= go
FUZZ_TIME ?= 30s
DURATION  ?= 10s

.PHONY: all build run test test-vm check generate bench fuzz endurance clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/memtrace ./cmd/memtrace

# run traces the bundled service for ten seconds, or the process PID=….
run: build
	@GO='$(GO)' scripts/run '$(PID)' '$(DURATION)'

test:
	@scripts/install-packages test vm
	@FUZZ_TIME=300x scripts/fuzz
	$(GO) run ./scripts/runtests

# test-vm runs the kernel tests on other kernels and on arm64, in emulated machines.
test-vm:
	@scripts/install-packages test vm
	$(GO) test -count=1 -timeout 30m -v ./scripts/vm

check:
	@scripts/install-packages generate
	scripts/check

generate:
	@scripts/install-packages generate
	$(GO) generate ./bpf

# bench prints what memtrace and other tracers cost their targets: docs/overhead.md.
bench: build
	@scripts/install-packages test bench
	$(GO) run ./scripts/bench $(BENCH)

fuzz:
	@FUZZ_TIME='$(FUZZ_TIME)' scripts/fuzz

# endurance repeats what tests do a few times a thousand times, or a hundred.
endurance:
	@scripts/install-packages test
	MEMTRACE_ENDURANCE=1 $(GO) test -count=1 -timeout 2h -run 'Cycles|AgainAndAgain' ./tracer ./cmd/memtrace

clean:
	rm -rf bin
