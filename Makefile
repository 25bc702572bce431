# `make test` is all that CI runs. Cargo's own target directory is used, or CARGO_TARGET_DIR where that is set.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Properties are tried with the same samples in each run; `make soak` tries others.
export PROPTEST_RNG_SEED ?= 17

# The steps of `make test`, quick to fail first.
STEPS := setup third-party check-fmt clippy check-architecture check-generated check-dependencies check-control-plane check-tests check-demo check-cost keep-third-party

# Those of `make quick`: what can be told without a real control plane.
QUICK := third-party check-fmt clippy check-architecture check-generated check-quick

# Tools that we install are kept outside the tree, by version, so that the next run finds them.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kausality/tools
DENY_VERSION := 0.20.2
DENY_ROOT := $(TOOLS)/cargo-deny-$(DENY_VERSION)
# The cargo-deny on the PATH if it is new enough, else ours.
DENY = $(shell have=$$({ cargo-deny --version 2>/dev/null || true; } | cut -d' ' -f2); \
	oldest=$$(printf '%s\n' "$(DENY_VERSION)" "$$have" | sort -V | head -n 1); \
	if [ "$$oldest" = "$(DENY_VERSION)" ]; then echo cargo-deny; else echo "$(DENY_ROOT)/bin/cargo-deny"; fi)

say = @printf '\n==> %s\n' "$(1)"

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Each step in turn, with its time, up to the first that fails.
steps = @start=$$SECONDS; step=; done=; \
	trap 'if [ -z "$$done" ]; then printf "\n==> FAILED in \"make %s\" after %d s\n" "$$step" $$((SECONDS - start)); fi' EXIT; \
	for step in $(1); do \
		begin=$$SECONDS; $(MAKE) $$step; printf '    (%d s)\n' $$((SECONDS - begin)); \
	done; \
	done=yes; printf '\n==> All passed in %d s\n' $$((SECONDS - start))

.PHONY: test
test: ## Run everything that CI runs
	$(call steps,$(STEPS))

.PHONY: quick
quick: ## Run what fails most often, in three minutes: format, clippy, architecture, pure crates, scenarios on the sandbox
	$(call steps,$(QUICK))

.PHONY: demo
demo: ## See it work: a control plane on this machine, a roll-out, a drift, an approval
	$(call say,Building Kausality)
	@xtask/third-party restore
	@cargo build --locked --bin kausality
	@cargo run --quiet --locked --bin kausality -- demo

.PHONY: fmt
fmt: ## Format the code
	$(call say,Formatting the code)
	@cargo fmt --all

.PHONY: lint
lint: check-fmt clippy check-architecture check-generated check-dependencies ## Run all checks that need no test

.PHONY: setup
setup: ## Install the tools that are missing
	$(call say,Looking for the tools)
	@command -v cargo >/dev/null || { \
		echo 'cargo is missing: install Rust, as https://rustup.rs says.' >&2; exit 1; }
	@for tool in fmt clippy; do \
		cargo $$tool --version >/dev/null 2>&1 && continue; \
		component=$${tool/#fmt/rustfmt}; \
		command -v rustup >/dev/null || { \
			echo "cargo $$tool is missing: install the $$component of your Rust toolchain." >&2; exit 1; }; \
		echo "installing $$component"; rustup component add $$component; \
	done
	@if ! command -v valgrind >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'installing valgrind'; apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind; \
		else \
			echo 'valgrind is missing, and counts instructions in "make check-cost": install it with your' >&2; \
			echo 'package manager, for instance: sudo apt-get install valgrind' >&2; exit 1; \
		fi; \
	fi

	@if [ ! -e "$$(echo /usr/lib/*/faketime/libfaketime.so.1)" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'installing faketime'; apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq faketime; \
		else \
			echo 'faketime is missing: the test with a wrong clock will be skipped (sudo apt-get install faketime)' >&2; \
		fi; \
	fi
	@if ! command -v tmux >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'installing tmux'; apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tmux; \
		else \
			echo 'tmux is missing: the tests that look at the terminal will be skipped (sudo apt-get install tmux)' >&2; \
		fi; \
	fi

# Compiled once for all clones on a machine: xtask/third-party says how.
.PHONY: third-party keep-third-party
third-party:
	@xtask/third-party restore
keep-third-party:
	@xtask/third-party save

.PHONY: check-fmt
check-fmt: ## Is the code formatted?
	$(call say,Checking the format)
	@cargo fmt --all --check

.PHONY: clippy
clippy: ## Does clippy agree?
	$(call say,Running clippy)
	@cargo clippy --workspace --all-targets --locked -- -D warnings
	@# Not among all targets, since `cargo test` leaves it out.
	@cargo clippy --workspace --test peers --locked -- -D warnings

.PHONY: check-architecture
check-architecture: ## Are the pure crates pure, and do dependencies point one way?
	$(call say,Checking the architecture)
	@cargo xtask check

.PHONY: check-generated
check-generated: ## Are the files that follow from the code up to date?
	$(call say,Checking what is generated)
	@cargo xtask generate --check

.PHONY: check-dependencies
check-dependencies: ## Are licenses, sources and versions of the dependencies as deny.toml wants them?
	$(call say,Checking the dependencies)
	@cargo xtask dependencies

.PHONY: check-tests
check-tests: ## Do all tests pass, those in the documentation among them?
	$(call say,Running the tests)
	@# Many tests wait for processes: more of them than there are processors keep these busy.
	@RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} cargo xtask test

.PHONY: check-quick
check-quick: ## Do the pure crates and the scenarios on the sandbox pass?
	$(call say,Testing the pure crates and playing the scenarios on the sandbox)
	@cargo xtask test --quick

# Not in `make test`: 3,000 seeds take about an hour. The variables set other numbers.
.PHONY: soak
soak: ## Play thousands of random seeds, histories and programs, not the few of `make test`
	$(call say,Trying other samples)
	@env -u PROPTEST_RNG_SEED cargo test --locked --test it -- properties
	$(call say,Playing thousands of seeds)
	@KAUSALITY_SEEDS=$${KAUSALITY_SEEDS:-3000} cargo test --locked --test it seeds -- --nocapture
	$(call say,Comparing with a real API server)
	@KAUSALITY_HISTORIES=$${KAUSALITY_HISTORIES:-1000} KAUSALITY_PROGRAMS=$${KAUSALITY_PROGRAMS:-500} \
		KAUSALITY_DIFFERENTIAL_SEEDS=$${KAUSALITY_DIFFERENTIAL_SEEDS:-600} cargo test --locked --test it -- \
		histories:: ownership:: differential::

# Not in `make test`, which does it for less than a minute: half an hour of a control plane where everything comes and goes.
.PHONY: life
life: ## Live half an hour on a real control plane: churn, drifts, policies, restarts of every part, certificates
	$(call say,Living for half an hour)
	@KAUSALITY_LIFE_SECONDS=$${KAUSALITY_LIFE_SECONDS:-1800} REQUIRE_CONTROL_PLANE=1 \
		cargo test --locked --test it much_life -- --nocapture

# Not in `make test`: each suite needs a program of somebody else. With REQUIRE_PEERS=1 those are built, which takes
# minutes; without, suites whose program is not in the cache are skipped. For the whole workspace, so that dependencies
# have the same features as in `make check-tests`, and are not built once more.
.PHONY: test-peers
test-peers: ## Run the suites that need third-party programs, where those are built (REQUIRE_PEERS=1 builds all)
	@peers=$$(cargo xtask peers --output name); suites=(); \
	for peer in $$peers; do \
		if [ "$${REQUIRE_PEERS:-0}" != 0 ]; then cargo xtask peer $$peer >/dev/null; fi; \
		code=0; said=$$(cargo xtask peer $$peer --path 2>&1 >/dev/null) || code=$$?; \
		case $$code in \
		0) suites+=("$${peer//-/_}::") ;; \
		3) printf '==> SKIPPED: %s\n' "$$said" ;; \
		*) printf '%s\n' "$$said" >&2; exit $$code ;; \
		esac; \
	done; \
	for suite in "$${suites[@]}"; do \
		printf '\n==> Running the suite %s\n' "$$suite"; \
		cargo test --workspace --locked --test peers -- "$$suite"; \
	done

# Not in `make test`: each bug is built, and then looked for in up to 1,000 seeds.
.PHONY: check-planted
check-planted: ## Does simulation find bugs that are planted?
	$(call say,Planting bugs)
	@cargo xtask plant

.PHONY: check-demo
check-demo: ## Does the demo run to its end?
	$(call say,Running the demo)
	@cargo run --quiet --locked --bin kausality -- demo >/dev/null

.PHONY: check-cost
check-cost: ## Do the hot paths take as many instructions as recorded?
	$(call say,Checking the cost)
	@cargo xtask cost

# Not in `make test`: a figure from a busy machine says nothing. For instance: make bench BENCH='--quick --json bench.json'.
.PHONY: bench
bench: ## Measure what admission costs, beside a webhook that does nothing (some minutes)
	$(call say,Measuring what admission costs)
	@cargo bench --locked --package kausality --bench load -- $(BENCH)

# Exit code 3 says that there is none and none can be built. With REQUIRE_CONTROL_PLANE=1 it is 1, as for any failure.
.PHONY: check-control-plane
check-control-plane: ## Is there a control plane to test against? (builds it, once)
	$(call say,Providing the control plane for tests)
	@code=0; cargo xtask control-plane || code=$$?; \
	if [ $$code = 3 ]; then \
		printf '\n==> SKIPPED: the tests against a real control plane, for the reason above\n' >&2; \
	else \
		exit $$code; \
	fi

.PHONY: control-plane
control-plane: ## Provide the control plane for tests, and print its folder
	$(call say,Providing the control plane for tests)
	@cargo xtask control-plane

# For instance: make image IMAGE='--tag registry.example.com/kausality:0.1.0 --output kausality.tar'.
.PHONY: image
image: ## Make the container image, without a container engine
	$(call say,Making the image)
	@cargo xtask image $(IMAGE)

# Not in `make test`: it fetches the RustSec database from GitHub, and fails when others publish something. And cargo-deny
# takes minutes to compile; `cargo xtask dependencies` reads the same rules from deny.toml.
.PHONY: advisories
advisories: ## Is a dependency known to be vulnerable? (compiles cargo-deny, fetches the RustSec database)
	$(call say,Checking the advisories)
	@deny="$(DENY)"; \
	if ! command -v "$$deny" >/dev/null; then \
		echo "installing cargo-deny $(DENY_VERSION) into $(DENY_ROOT)"; \
		cargo install --locked --version $(DENY_VERSION) --root "$(DENY_ROOT)" cargo-deny; \
	fi; \
	"$$deny" --locked check
