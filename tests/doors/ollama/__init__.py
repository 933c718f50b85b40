"""Tests of the door that speaks Ollama's API."""
