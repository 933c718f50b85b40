"""Tests of bytes to and from upstreams."""
