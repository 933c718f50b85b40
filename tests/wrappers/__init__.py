"""Tests of what wraps adapters."""
