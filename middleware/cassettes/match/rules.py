"""What counts when an ask is compared: a level, the model's name, values that may differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from adapters.protocol import Json
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.match.paths import LONGEST, steps_of
from middleware.cassettes.match.patterns import WORDS, pattern_of
from middleware.config.hints import suggest

Level = Literal["strict", "normal", "conversation"]
Repeats = Literal["miss", "last"]
_MOST_MASKS = 200
_KEYS = ("level", "model", "models", "mask", "repeats")
_MASK_KEYS = ("at", "what", "carry")


@dataclass(frozen=True, slots=True)
class Mask:
    """Values that may be others now than when they were recorded."""

    at: str
    """The path below which they stand."""
    what: str
    """One of `patterns.WORDS`, or a pattern."""
    carry: bool = False
    """The answer gets the value of now wherever the recorded one stood."""


@dataclass(frozen=True, slots=True)
class MatchRules:
    """What is empty was not said; it means normal, the same model, no repeats."""

    level: Level | Literal[""] = ""
    model: Literal["", "any"] = ""
    models: Mapping[str, str] = field(default_factory=dict)
    """Model asked for → the recorded one that answers for it."""
    masks: tuple[Mask, ...] = ()
    repeats: Repeats | Literal[""] = ""


def combined(*rules: MatchRules) -> MatchRules:
    """Rules of several places, the nearest first: it wins, but masks add up."""
    return MatchRules(
        level=next((one.level for one in rules if one.level), "normal"),
        model=next((one.model for one in rules if one.model), ""),
        models=next((one.models for one in rules if one.models), {}),
        masks=tuple(dict.fromkeys(mask for one in rules for mask in one.masks)),
        repeats=next((one.repeats for one in rules if one.repeats), "miss"),
    )


def read_rules(found: Json, where: str) -> MatchRules:
    """Read `match:` of a cassette, or match.toml; a mistake is named with what to write."""
    reading = _Reading(where)
    reading.check_keys(found, _KEYS, "match")
    masks, models = found.get("mask", []), found.get("models", {})
    if not isinstance(masks, list) or len(masks) > _MOST_MASKS:
        raise reading.mistake("mask", f"expected a list of at most {_MOST_MASKS} masks")
    if not isinstance(models, dict) or not all(isinstance(one, str) for one in models.values()):
        raise reading.mistake("models", 'expected {asked = "recorded"}, names of models')
    if twice := sorted(models.keys() & set(models.values())):
        raise reading.mistake("models", f"{twice[0]!r} is both asked and recorded; say it one way")
    return MatchRules(
        level=reading.choice(found, "level", get_args(Level)),
        model=reading.choice(found, "model", ("any",)),
        models=models,
        masks=tuple(reading.mask(one, f"mask[{at}]") for at, one in enumerate(masks)),
        repeats=reading.choice(found, "repeats", get_args(Repeats)),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    where: str

    def mistake(self, key: str, text: str) -> UnreadableCassette:
        return UnreadableCassette(self.where, f"'{key}': {text}")

    def check_keys(self, found: Any, known: tuple[str, ...], name: str) -> None:
        if not isinstance(found, dict):
            raise self.mistake(name, f"expected the keys {', '.join(known)}")
        for key in found:
            if key not in known:
                hint = suggest(str(key), known) or f" There are {', '.join(known)}."
                raise self.mistake(str(key), f"no key of {name}.{hint}")

    def choice(self, found: Json, key: str, allowed: tuple[str, ...]) -> Any:
        value = found.get(key, "")
        if value != "" and value not in allowed:
            raise self.mistake(key, f"expected {' or '.join(allowed)}, found {value!r}")
        return value

    def mask(self, found: Any, name: str) -> Mask:
        self.check_keys(found, _MASK_KEYS, name)
        at, what, carry = found.get("at"), found.get("what"), found.get("carry", False)
        for key, text in (("at", at), ("what", what)):
            if not isinstance(text, str) or not text or len(text) > LONGEST:
                raise self.mistake(f"{name}.{key}", f"expected a text of 1 to {LONGEST} characters")
        if not isinstance(carry, bool):
            raise self.mistake(f"{name}.carry", "expected true or false")
        if what.isalpha() and what not in WORDS:
            hint = suggest(what, WORDS)
            raise self.mistake(f"{name}.what", f"expected {', '.join(WORDS)} or a pattern.{hint}")
        try:
            steps_of(at)
        except ValueError as error:
            hint = "Write it as messages[0].content or messages[role=system]."
            raise self.mistake(f"{name}.at", f"{error}. {hint}") from None
        try:
            pattern_of(what)
        except (re.error, RecursionError, OverflowError) as error:
            raise self.mistake(f"{name}.what", f"{what!r} is no pattern: {error}") from None
        return Mask(at, what, carry)
