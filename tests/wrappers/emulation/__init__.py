"""Tests of emulation: calls by prompt."""
