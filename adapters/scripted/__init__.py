"""A model that answers by rules, and says so: for demos, tests and users' own tests."""

from adapters.scripted.model import Scripted, connect

__all__ = ("Scripted", "connect")
