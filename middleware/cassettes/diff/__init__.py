"""Decisions compared: two cassettes, or what was recorded and what a model says now."""
