"""Tests of the door of Anthropic's Messages."""
