"""Tests of cassettes: diff."""
