"""Tests of what stands around every leaf."""
