"""The protocols we are called in."""
