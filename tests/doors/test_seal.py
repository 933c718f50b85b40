"""Seals: what clients carry is ours when it comes back, or it is not read."""

from __future__ import annotations

import pytest

from middleware.doors.seal import seal, unseal

SECRET = b"a secret"


@pytest.mark.parametrize("content", [b"", b"thought", bytes(range(256)) * 100])
def test_what_was_sealed_comes_back_with_its_upstream(content: bytes) -> None:
    sealed = seal("utm1.", SECRET, "deepseek-\u6d4b", content)
    assert sealed.startswith("utm1.")
    assert sealed[5:].replace("-", "").replace("_", "").isalnum()
    assert unseal("utm1.", SECRET, sealed) == ("deepseek-\u6d4b", content)


def test_what_was_changed_is_not_read() -> None:
    sealed = seal("utm1.", SECRET, "deepseek", b"thought")
    for at in range(5, len(sealed) - 1):  # the last letter has bits that mean nothing
        other = "A" if sealed[at] != "A" else "B"
        assert unseal("utm1.", SECRET, sealed[:at] + other + sealed[at + 1 :]) is None


@pytest.mark.parametrize("sealed", ["", "utm1.", "utm1.\u00e9", "utm1.AAAA", "EqQB", "utr1.AAAA"])
def test_what_is_no_seal_is_not_read(sealed: str) -> None:
    assert unseal("utm1.", SECRET, sealed) is None


def test_another_secret_or_another_mark_is_another_seal() -> None:
    sealed = seal("utm1.", SECRET, "deepseek", b"thought")
    assert unseal("utm1.", b"another", sealed) is None
    assert unseal("utr1.", SECRET, sealed.replace("utm1.", "utr1.")) is None


def test_the_same_is_sealed_the_same() -> None:
    assert seal("utm1.", SECRET, "a", b"b") == seal("utm1.", SECRET, "a", b"b")
