"""Upstreams, languages and conversations to test with."""
