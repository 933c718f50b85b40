"""The key of an ask: what of its form counts, with the values in it that may differ set aside."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

import orjson

from middleware.cassettes.match.masks import SECRETS, MaskedValue, masked
from middleware.cassettes.match.rules import MatchRules
from middleware.cassettes.match.values import Form, JsonValue
from middleware.cassettes.visitor import Operation

# What cannot change the answer.
_ASIDE = frozenset(
    {
        *("stream", "stream_options", "user", "metadata", "store", "seed", "service_tier"),
        *("prompt_cache_key", "safety_identifier"),
    }
)


@dataclass(frozen=True, slots=True)
class AskKey:
    digest: bytes
    values: tuple[MaskedValue, ...] = field(default=(), compare=False)
    """In the order in which they first stand in the ask."""


def key_of(operation: Operation, form: Form, rules: MatchRules) -> AskKey:
    """Two asks are answered by the same turns if their digests are equal."""
    _, dumped, values = set_aside(form, rules)
    digest = hashlib.blake2b(dumped, digest_size=16, person=operation.encode())
    return AskKey(digest.digest(), values)


def set_aside(form: Form, rules: MatchRules) -> tuple[Form, bytes, tuple[MaskedValue, ...]]:
    """What counts of a form, without the values that may differ; its bytes; those values."""
    counted = _counted(form, rules)
    dumped = _dumped(counted)
    # From its end: then a bracket, which is rare, is what is looked for first.
    masks = (*rules.masks, SECRETS) if dumped.rfind(b"[secret") >= 0 else rules.masks
    if not masks:
        return counted, dumped, ()
    form, values = masked(counted, masks)
    return form, _dumped(form), values


def substitutions(recorded: AskKey, now: AskKey) -> tuple[tuple[str, str], ...]:
    """Of two equal keys each recorded value that is carried, and what stands for it now."""
    pairs = zip(recorded.values, now.values, strict=True)
    return tuple((old.text, new.text) for old, new in pairs if old.carry and old.text != new.text)


def _counted(form: Form, rules: MatchRules) -> Form:
    """The part of a form that its level counts."""
    if rules.level == "strict":
        tools = form.get("tools")
        counted = form | ({"tools_in_order": [*tools]} if isinstance(tools, dict) else {})
    elif rules.level == "conversation":
        counted = _conversation(form)
    else:
        counted = {name: value for name, value in form.items() if name not in _ASIDE}
    if rules.model == "any":
        counted.pop("model", None)
    elif rules.models:
        model = str(form.get("model"))
        counted["model"] = rules.models.get(model, model)
    return counted


def _conversation(form: Form) -> Form:
    """A message that does not count is None."""
    counted: Form = {name: form[name] for name in ("model", "input") if name in form}
    if isinstance(messages := form.get("messages"), list):
        counted["messages"] = [None if _is_system(one) else one for one in messages]
    if isinstance(tools := form.get("tools"), dict):
        counted["tools"] = dict.fromkeys(tools)
    return counted


def _is_system(message: JsonValue) -> bool:
    return isinstance(message, dict) and message["role"] == "system"


def _dumped(counted: Form) -> bytes:
    messages = counted.get("messages")
    if isinstance(messages, list) and None in messages:
        counted = {**counted, "messages": [one for one in messages if one is not None]}
    try:
        return orjson.dumps(counted, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(counted, sort_keys=True).encode()
