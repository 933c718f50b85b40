"""Upstreams to test against: scripted, recorded, on this machine's loopback."""
