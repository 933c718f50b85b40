"""Tests of time and memory in proportion."""
