"""Tests of requests that were sent."""
