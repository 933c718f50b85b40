"""Tests of the model on this machine."""
