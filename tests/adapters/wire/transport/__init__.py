"""Tests of how requests travel."""
