"""Tests of cassettes: bridges."""
