"""Blocks with names and arguments, as the tests of them share."""

from __future__ import annotations


def block(name: str, arguments: str) -> str:
    return f"USE_TOOL\nTOOL_NAME: {name}\nTOOL_ARGS: {arguments}"
