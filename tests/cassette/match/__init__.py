"""Tests of cassettes: match."""
