"""The bars of `docs/architecture.md`, measured on every run; every rule is also shown a breach."""
