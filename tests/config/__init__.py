"""Tests of the config."""
