"""Tests of cassettes: run."""
