"""Tests of `adapters/`."""
