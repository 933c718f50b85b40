"""Tests of the chat on the terminal."""
