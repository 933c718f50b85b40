"""What of the values of a table was given, and what follows where something was not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.kind import Kind
from middleware.config import keys


def given_of(values: Mapping[str, Any], known: Mapping[str, keys.Key]) -> dict[str, Any]:
    return {name: values[name] for name in known if values[name] is not None}


def timeouts_of(
    kind: Kind, common: Mapping[str, Any], own: Mapping[str, Any]
) -> Mapping[str, float]:
    """What is configured wins; idle also bounds an open block, first_event a plain answer."""
    configured = {**given_of(common, keys.TIMEOUTS), **given_of(own, keys.TIMEOUTS)}
    if "idle" in configured:
        configured.setdefault("idle_open", configured["idle"])
    if "first_event" in configured:
        configured.setdefault("plain", configured["first_event"])
    return {**kind.timeouts, **configured}


def of_any_kind(written: Mapping[str, Any]) -> dict[str, Any]:
    """What a model may have whatever its upstream is."""
    known = keys.MODEL.keys() - {"options", "abilities"}
    return {name: value for name, value in written.items() if name in known}
