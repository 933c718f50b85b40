"""A short speed comparison: this gateway beside a bare pass-through, in front of one upstream.

Every figure is CPU time of a server process per request, so a busy machine moves both alike; what
counts is the ratio within one run. `make bench` runs it.
"""
