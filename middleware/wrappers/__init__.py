"""What wraps adapters, one file or package each; docs/architecture.md has their order."""
