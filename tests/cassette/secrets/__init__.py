"""Tests of cassettes: secrets."""
