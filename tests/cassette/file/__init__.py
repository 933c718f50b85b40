"""Tests of cassettes: file."""
