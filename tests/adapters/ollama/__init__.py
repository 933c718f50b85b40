"""Tests of Ollama's language."""
