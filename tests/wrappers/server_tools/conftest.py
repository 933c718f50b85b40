"""A Redis of these tests."""

from tests.state.conftest import server

__all__ = ("server",)
