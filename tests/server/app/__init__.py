"""Tests of the app from outside."""
