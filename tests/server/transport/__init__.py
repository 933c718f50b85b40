"""Tests of the wire to clients."""
