# `make test` is all that CI runs. Cargo's own target directory is used, or CARGO_TARGET_DIR where that is set.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# The steps of `make test`, quick to fail first.
STEPS := setup check-fmt clippy check-architecture check-generated check-dependencies check-control-plane check-tests check-demo check-cost

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

.PHONY: test
test: ## Run everything that CI runs
	@start=$$SECONDS; step=; done=; \
	trap 'if [ -z "$$done" ]; then printf "\n==> FAILED in \"make %s\" after %d s\n" "$$step" $$((SECONDS - start)); fi' EXIT; \
	for step in $(STEPS); do \
		begin=$$SECONDS; $(MAKE) $$step; printf '    (%d s)\n' $$((SECONDS - begin)); \
	done; \
	done=yes; printf '\n==> All passed in %d s\n' $$((SECONDS - start))

.PHONY: demo
demo: ## See it work: a control plane on this machine, a roll-out, a drift, an approval
	$(call say,Building Kausality)
	@cargo build --locked --package kausality
	@cargo run --quiet --locked --package kausality -- demo

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
	@deny="$(DENY)"; \
	if ! command -v "$$deny" >/dev/null; then \
		echo "installing cargo-deny $(DENY_VERSION) into $(DENY_ROOT)"; \
		cargo install --locked --version $(DENY_VERSION) --root "$(DENY_ROOT)" cargo-deny; \
	fi
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

.PHONY: check-fmt
check-fmt: ## Is the code formatted?
	$(call say,Checking the format)
	@cargo fmt --all --check

.PHONY: clippy
clippy: ## Does clippy agree?
	$(call say,Running clippy)
	@cargo clippy --workspace --all-targets --locked -- -D warnings

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
	@"$(DENY)" --locked --log-level error check bans licenses sources

.PHONY: check-tests
check-tests: ## Do all tests pass, those in the documentation among them?
	$(call say,Running the tests)
	@cargo test --workspace --locked

# Not in `make test`: each bug is built, and then looked for in up to 1,000 seeds.
.PHONY: check-planted
check-planted: ## Does simulation find bugs that are planted?
	$(call say,Planting bugs)
	@cargo xtask plant

.PHONY: check-demo
check-demo: ## Does the demo run to its end?
	$(call say,Running the demo)
	@# The tests have built the program; alone, its dependencies would have other features, and all be built once more.
	@program="$${CARGO_TARGET_DIR:-target}/debug/kausality"; \
	[ -x "$$program" ] || cargo build --locked --package kausality; \
	"$$program" demo >/dev/null

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

# Not in `make test`: it fetches the RustSec database from GitHub, and fails when others publish something.
.PHONY: advisories
advisories: setup ## Is a dependency known to be vulnerable? (fetches the RustSec database)
	$(call say,Checking the advisories)
	@"$(DENY)" --locked check advisories
