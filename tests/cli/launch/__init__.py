"""Tests of `usetool run`."""
