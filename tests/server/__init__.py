"""Tests of what stands around the doors."""
