"""What clients carry for us between requests: sealed, so that it is ours when it comes back.

A seal says which upstream its content is of. The content is not hidden: its client has seen it.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hashlib import sha256

_LONGEST = 8 << 20
_SIGNED = 16
"""Bytes of a signature; who guesses one has put words into the mouth of his own model."""


def seal(mark: str, secret: bytes, upstream: str, content: bytes) -> str:
    """`mark` stands in front of it, for all to see."""
    name = upstream.encode()[:255]
    said = bytes((len(name),)) + name + content
    return mark + urlsafe_b64encode(_signature(mark, secret, said) + said).decode().rstrip("=")


def unseal(mark: str, secret: bytes, sealed: str) -> tuple[str, bytes] | None:
    """Upstream and content; None where it is not ours, or not what it was."""
    if not sealed.startswith(mark) or len(sealed) > _LONGEST:
        return None
    text = sealed[len(mark) :]
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Error, ValueError):
        return None
    signature, said = data[:_SIGNED], data[_SIGNED:]
    if not said or not hmac.compare_digest(signature, _signature(mark, secret, said)):
        return None
    end = 1 + said[0]
    return said[1:end].decode("utf-8", "replace"), said[end:]


def _signature(mark: str, secret: bytes, said: bytes) -> bytes:
    return hmac.digest(secret or b"usetool", mark.encode() + said, sha256)[:_SIGNED]
