"""Tests of record and replay as a gateway does both: from a request to its bytes again."""
