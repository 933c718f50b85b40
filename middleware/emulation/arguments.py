"""The arguments of a call, from whatever the model wrote: read, repaired, fitted to the schema.

Strict JSON is tried first and is never reinterpreted; what is valid keeps the model's bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from adapters.history import canonical
from adapters.protocol import Json
from middleware.emulation import lenient
from middleware.emulation.elements import SPACE, nested
from middleware.emulation.schemas import coerced, problem, properties, required, types

_FENCED = re.compile(r"\A\s*(?:```|~~~)\w*\s*\n?(.*?)\n?\s*(?:(?:```|~~~)\s*)?\Z", re.DOTALL)
_NOTHING = frozenset(("", "none", "null", "n/a", "na", "nil", "-", "{}", "undefined"))
_WRAPPERS = frozenset(("arguments", "parameters", "args", "input", "tool_input", "action_input"))
_NAMES = frozenset(("name", "tool", "tool_name", "function", "action"))
_ABSENT = object()
_LEVELS = 3
_HOLDERS = frozenset(("array", "object"))

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
    given = said is not None and said != ""
    if said is None:
        value: Any = {}
    elif isinstance(said, str):
        given = said.strip().lower() not in _NOTHING or said.strip() == "{}"
        value = _from_text(said, schema)
    elif isinstance(said, dict):
        value = said
    else:
        value = _from_pairs(said, schema)
    value = coerced(value, schema, schema)
    return Arguments(_written(value), problem(value, schema), given)


def _untouched(text: str, schema: Json) -> Arguments | None:
    """Strict JSON that the schema takes as it is."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or problem(value, schema):
        return None
    if _inside(value, schema) is not None:
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
    fenced = _FENCED.match(text)
    bare = (fenced[1] if fenced and fenced[1].strip() else text).strip().strip("`").strip()
    try:
        yield json.loads(bare, strict=False)
        return  # valid input is never reinterpreted
    except (ValueError, RecursionError):
        pass
    if bare[:1] in ("{", "[", "｛", "［", '"', "“"):
        try:
            yield lenient.read(bare).value
        except (ValueError, RecursionError):
            return


def _unwrapped(value: Any, schema: Json) -> Any:
    """Without the wrapping: a list of one, JSON in a string, the call around its arguments."""
    for _ in range(_LEVELS):
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            value = value[0]
        elif isinstance(value, str) and value.strip()[:1] == "{":
            value = next(_readings(value), value)
        elif isinstance(value, dict) and (inner := _inside(value, schema)) is not None:
            value = inner
        else:
            break
    return value


def _inside(value: Json, schema: Json) -> Any:
    """The arguments in `{"arguments": {…}}`, unless the tool has such a parameter."""
    declared = properties(schema, schema)
    wrappers = [name for name in value if name in _WRAPPERS and name not in declared]
    others = [name for name in value if name not in wrappers and name not in _NAMES]
    if len(wrappers) != 1 or others or any(name in declared for name in value):
        return None
    inner = value[wrappers[0]]
    return inner if isinstance(inner, dict | str) else None


def _around_scalar(value: Any, text: str, schema: Json) -> Json:
    """A bare value, where the tool has just one place for it."""
    if not properties(schema, schema) and not isinstance(value, dict):
        return {}  # there is nothing to give
    place = lone_parameter(schema)
    if not place or isinstance(value, dict):
        raise ValueError(f"the arguments are not a JSON object: {text.strip()[:80]!r}")
    wanted = types(properties(schema, schema).get(place, {}), schema)
    if isinstance(value, list) and wanted == {"string"}:
        value = text.strip()
    return {place: value}


def lone_parameter(schema: Json) -> str:
    """The one parameter a bare value can be for; a tool that names none takes `input`."""
    declared = properties(schema, schema)
    needed = required(schema, schema)
    places = needed if len(needed) == 1 else tuple(declared)
    return places[0] if len(places) == 1 else "" if places else "input"


def _from_pairs(pairs: Pairs, schema: Json) -> Json:
    """Values written as plain text, typed by the schema: a string stays verbatim."""
    declared = properties(schema, schema)
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a parameter is given twice")
    if not all(names):
        raise ValueError("a parameter has no name")
    return {name: typed(text, declared.get(name, {}), schema) for name, text in pairs}


def typed(text: str, schema: Any, root: Json) -> Any:
    """One value from its text."""
    wanted = types(schema, root)
    value = _typed(text, wanted)
    return [value] if wanted == {"array"} and not isinstance(value, list) else value


def _typed(text: str, wanted: frozenset[str]) -> Any:
    if wanted == {"string"} or (wanted == {"string", "null"} and text.strip() != "null"):
        return text
    bare = text.strip()
    if bare.startswith(SPACE) and "string" not in wanted - _HOLDERS:
        return nested(bare)
    if bare.startswith(('[{\\"', '{\\"')):
        bare = bare.replace('\\"', '"').replace("\\\\", "\\")
    try:
        return json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        pass
    if bare in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[bare]
    if bare[:1] in ("{", "["):
        try:
            return lenient.read(bare).value
        except (ValueError, RecursionError):
            return text
    return text
