"""The arguments of a call, from whatever the model wrote: read, repaired, fitted to the schema.

Strict JSON is tried first and is never reinterpreted; what is valid keeps the model's bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from adapters.protocol import Json
from adapters.shared.history import canonical
from adapters.shared.schema import mismatch
from adapters.shared.schema.walk import properties, required
from middleware.wrappers.emulation.formats.elements import SPACE, nested
from middleware.wrappers.emulation.formats.synonyms import ARGUMENTS, NAMES
from middleware.wrappers.emulation.judge import lenient_json as lenient
from middleware.wrappers.emulation.judge.names import Names, plain
from middleware.wrappers.emulation.judge.schemas import (
    coerced,
    is_json,
    types,
    value_of,
)
from middleware.wrappers.emulation.judge.strict_json import parse_strict, require_few

_FENCE = re.compile(r"\s*+(?:```|~~~)\w*+")
_NOTHING = frozenset(("", "none", "null", "n/a", "na", "nil", "-", "{}", "undefined"))
_EMPTY: tuple[Any, ...] = (None, "", [], {})
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


class _Target(NamedTuple):
    """The tool that is called."""

    name: str
    schema: Json


def settle(written: str | Pairs | Json | None, schema: Json, name: str = "") -> Arguments:
    """The object a model meant; raise ValueError where none can be made out."""
    if isinstance(written, str) and (whole := _untouched(written, schema)):
        return whole
    tool = _Target(name, schema)
    given = bool(written)
    if isinstance(written, str):
        given = written.strip() == "{}" or written.strip().lower() not in _NOTHING
        value: Any = _from_text(written, tool)
    elif isinstance(written, dict):
        value, given = _from_object(written, tool), True
    else:
        value = _from_pairs(written or (), schema)
    if not is_json(value):
        raise ValueError("a number in the arguments is too large, or is none that JSON has")
    value = coerced(value, schema)
    return Arguments(_written(value), mismatch(value, schema) or "", given)


def _untouched(text: str, schema: Json) -> Arguments | None:
    """Strict JSON that the schema takes as it is."""
    try:
        require_few(text)
        value = orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or mismatch(value, schema) or _wrapper(value, schema):
        return None
    return Arguments(canonical(text.strip()))


def _written(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_text(text: str, tool: _Target) -> Json:
    if text.strip().lower() in _NOTHING:
        return {}
    last: Any = _ABSENT
    for value in _readings(text):
        last = _unwrapped(value, tool)
        if isinstance(last, dict):
            return last
    lone = text.strip() if last is _ABSENT else last
    return _around_scalar(lone, text, tool.schema)


def _from_object(value: Json, tool: _Target) -> Json:
    inner = _unwrapped(value, tool)
    return inner if isinstance(inner, dict) else _around_scalar(inner, str(inner), tool.schema)


def _readings(text: str) -> Iterator[Any]:
    """Every way to read the text, the strictest first."""
    bare = (_unfenced(text) or text).strip().strip("`").strip()
    try:
        yield parse_strict(bare)
        return  # valid input is never reinterpreted
    except ValueError:
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


def _unwrapped(value: Any, tool: _Target) -> Any:
    """Without the wrapping: a list of one, JSON in a string, the call around its arguments."""
    for _ in range(_LEVELS):
        inner = _one_level(value, tool)
        if inner is None:
            break
        value = inner
    return value


def _one_level(value: Any, tool: _Target) -> Any:
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], dict) else None
    if isinstance(value, str):
        return next(_readings(value), None) if value.strip()[:1] == "{" else None
    if not isinstance(value, dict) or not (wrapper := _wrapper(value, tool.schema)):
        return None
    _require_own_name(value, tool.name)
    return value[wrapper]


def _wrapper(value: Json, schema: Json) -> str:
    """The one member that is no parameter and holds all that are; empty where none does."""
    others = [key for key in value if key not in NAMES]
    if len(others) != 1 or value.keys() & properties(schema):
        return ""
    (key,) = others
    if isinstance(value[key], dict):
        return key if _holds_them(key, value, schema) else ""
    return key if isinstance(value[key], str) and key in ARGUMENTS else ""


def _holds_them(key: str, value: Json, schema: Json) -> bool:
    """Are the members of this one what the schema has, and the member itself not?"""
    inner, declared = value[key], frozenset(map(plain, properties(schema)))
    fitting = declared & frozenset(map(plain, inner))
    if key in ARGUMENTS:
        return bool(fitting or not inner or not declared)
    if not fitting or len(fitting) < len(inner):
        return False
    return key == "properties" or bool(mismatch(value, schema))


def _require_own_name(value: Json, name: str) -> None:
    """The name beside the arguments is the tool's own, or the call is of another."""
    for written in (value[key] for key in NAMES if name and key in value):
        if not isinstance(written, str) or Names((name,)).find(written) is None:
            raise ValueError(f"the arguments name another tool: {str(written)[:80]!r}")


def _around_scalar(value: Any, text: str, schema: Json) -> Json:
    """A bare value, where the tool has just one place for it."""
    if not properties(schema) and value in _EMPTY:
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


def as_text(written: str | Pairs | Json | None) -> str:
    """What a model gave, to be shown where it could not be passed on."""
    if isinstance(written, str):
        return written
    return json.dumps(dict(written), ensure_ascii=False) if written else ""


def typed(text: str, schema: Any) -> Any:
    """One value from its text."""
    wanted = types(schema)
    is_text = wanted in _TEXTS and not ("null" in wanted and text.strip() == "null")
    value = text if is_text else _typed(text.strip(), text, wanted)
    return [value] if wanted == {"array"} and not isinstance(value, list) else value


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
    return _figure(bare, text, wanted)


def _figure(bare: str, text: str, wanted: frozenset[str]) -> Any:
    """A number where it is one; "NaN" is a text where it may be."""
    try:
        value = parse_strict(bare)
    except ValueError:
        return text
    return text if (not wanted or "string" in wanted) and not is_json(value) else value
