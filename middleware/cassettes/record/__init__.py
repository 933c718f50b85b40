"""Keeps what is asked, sent, heard and answered, and makes cassettes of it."""
