"""Tests of emulation's reader."""
