"""Tests of chat completions' door."""
