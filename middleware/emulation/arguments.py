"""The arguments of a call, from whatever the model wrote: read, repaired, fitted to the schema.

Strict JSON is tried first and is never reinterpreted; what is valid keeps the model's bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from adapters.history import canonical
from adapters.protocol import Json
from middleware.emulation import lenient
from middleware.emulation.elements import SPACE, nested
from middleware.emulation.schemas import coerced, problem, properties, required, types, value_of

_FENCE = re.compile(r"\s*+(?:```|~~~)\w*+")
_NOTHING = frozenset(("", "none", "null", "n/a", "na", "nil", "-", "{}", "undefined"))
_WRAPPERS = frozenset(("arguments", "parameters", "args", "input", "tool_input", "action_input"))
_NAMES = frozenset(("name", "tool", "tool_name", "function", "action"))
_HOLDERS = frozenset(("array", "object"))
_TEXTS = (frozenset(("string",)), frozenset(("string", "null")))
_LITERALS: Mapping[str, Any] = {"True": True, "False": False, "None": None}
_BEGINNINGS = ("{", "[", "｛", "［", '"', "“")
_ABSENT = object()
_LEVELS = 3

Pairs = Sequence[tuple[str, str]]


class Arguments(NamedTuple):
    text: str
    """A JSON object."""
    wrong: str = ""
    """What the schema still has against it, in one line."""
    given: bool = True
    """False: the model wrote nothing that is an object."""


def settle(said: str | Pairs | Json | None, schema: Json) -> Arguments:
    """The object a model meant; raise ValueError where none can be made out."""
    if isinstance(said, str) and (whole := _untouched(said, schema)):
        return whole
    given = bool(said)
    if isinstance(said, str):
        given = said.strip() == "{}" or said.strip().lower() not in _NOTHING
        value: Any = _from_text(said, schema)
    elif isinstance(said, dict):
        value, given = said, True
    else:
        value = _from_pairs(said or (), schema)
    value = coerced(value, schema)
    return Arguments(_written(value), problem(value, schema), given)


def _untouched(text: str, schema: Json) -> Arguments | None:
    """Strict JSON that the schema takes as it is."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or problem(value, schema) or _inside(value, schema) is not None:
        return None
    return Arguments(canonical(text.strip()))


def _written(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_text(text: str, schema: Json) -> Json:
    if text.strip().lower() in _NOTHING:
        return {}
    last: Any = _ABSENT
    for value in _readings(text):
        last = _unwrapped(value, schema)
        if isinstance(last, dict):
            return last
    lone = text.strip() if last is _ABSENT else last
    return _around_scalar(lone, text, schema)


def _readings(text: str) -> Iterator[Any]:
    """Every way to read the text, the strictest first."""
    bare = (_unfenced(text) or text).strip().strip("`").strip()
    try:
        yield json.loads(bare, strict=False)
        return  # valid input is never reinterpreted
    except (ValueError, RecursionError):
        pass
    if bare.startswith(_BEGINNINGS):
        try:
            yield lenient.read(bare).value
        except (ValueError, RecursionError):
            return


def _unfenced(text: str) -> str:
    """What a fence holds; nothing where there is none."""
    fence = _FENCE.match(text)
    return text[fence.end() :].rstrip().removesuffix("```").removesuffix("~~~") if fence else ""


def _unwrapped(value: Any, schema: Json) -> Any:
    """Without the wrapping: a list of one, JSON in a string, the call around its arguments."""
    for _ in range(_LEVELS):
        inner = _one_level(value, schema)
        if inner is None:
            break
        value = inner
    return value


def _one_level(value: Any, schema: Json) -> Any:
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], dict) else None
    if isinstance(value, str):
        return next(_readings(value), None) if value.strip()[:1] == "{" else None
    return _inside(value, schema) if isinstance(value, dict) else None


def _inside(value: Json, schema: Json) -> Any:
    """The arguments in `{"arguments": {…}}`, unless the tool has such a parameter."""
    wrappers = value.keys() & _WRAPPERS
    if len(wrappers) != 1 or value.keys() - wrappers - _NAMES or value.keys() & properties(schema):
        return None
    inner = value[wrappers.pop()]
    return inner if isinstance(inner, dict | str) else None


def _around_scalar(value: Any, text: str, schema: Json) -> Json:
    """A bare value, where the tool has just one place for it."""
    if not properties(schema):
        return {}  # there is nothing to give
    place = lone_parameter(schema)
    wanted = types(properties(schema).get(place))
    if not place or (isinstance(value, list) and wanted and "array" not in wanted):
        raise ValueError(f"the arguments are not a JSON object: {text.strip()[:80]!r}")
    return {place: value}


def lone_parameter(schema: Json) -> str:
    """The one parameter a bare value can be for; a tool that names none takes `input`."""
    places = required(schema)
    if len(places) != 1:
        places = list(properties(schema))
    return places[0] if len(places) == 1 else "" if places else "input"


def _from_pairs(pairs: Pairs, schema: Json) -> Json:
    """Values written as plain text, typed by the schema: a string stays verbatim."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a parameter is given twice")
    if not all(names):
        raise ValueError("a parameter has no name")
    declared = properties(schema)
    return {name: typed(text, declared.get(name)) for name, text in pairs}


def as_text(said: str | Pairs | Json | None) -> str:
    """What a model gave, to be shown where it could not be passed on."""
    if isinstance(said, str):
        return said
    return json.dumps(dict(said), ensure_ascii=False) if said else ""


def typed(text: str, schema: Any) -> Any:
    """One value from its text."""
    wanted = types(schema)
    value = text if _is_text(text, wanted) else _typed(text.strip(), text, wanted)
    return [value] if wanted == {"array"} and not isinstance(value, list) else value


def _is_text(text: str, wanted: frozenset[str]) -> bool:
    return wanted in _TEXTS and not ("null" in wanted and text.strip() == "null")


def _typed(bare: str, text: str, wanted: frozenset[str]) -> Any:
    if bare.startswith(SPACE):
        return text if "string" in wanted - _HOLDERS else nested(bare)
    if bare[:1] == "<" and wanted and wanted <= _HOLDERS:
        return nested(bare, "") or text
    if bare in _LITERALS:
        return _LITERALS[bare]
    if bare[:1] in ("{", "["):
        value = value_of(bare)
        return text if value is None else value
    try:
        return json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return text
