"""Tests of the languages of OpenAI-compatible servers."""
