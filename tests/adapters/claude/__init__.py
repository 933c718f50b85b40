"""Tests of Claude's language."""
