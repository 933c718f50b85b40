"""What wraps an adapter or serves the edge: emulation, pipelines, server tools and the doors."""

__version__ = "0.1.0"
