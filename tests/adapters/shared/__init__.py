"""Tests of what the languages share."""
