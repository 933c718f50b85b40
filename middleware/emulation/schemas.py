"""What a tool's schema says about a value: is it valid, and what would make it so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match
from referencing.exceptions import Unresolvable

from adapters.protocol import Json
from middleware.emulation import lenient
from middleware.emulation.names import plain

_DEPTH = 12
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


def problem(value: Any, schema: Json) -> str:
    """What is wrong with a value, in one line; empty where nothing is (or nothing can be said)."""
    if _plainly_valid(value, schema, 0):
        return ""
    try:
        error = best_match(jsonschema.Draft202012Validator(schema).iter_errors(value))
    except (Unresolvable, jsonschema.SchemaError, jsonschema.exceptions.UnknownType, re.error):
        return ""  # a schema that cannot be checked refuses nothing
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ""  # neither does one that is no schema
    if error is None:
        return ""
    where = ".".join(str(step) for step in error.absolute_path) or "the arguments"
    return f"{where}: {error.message[:200]}"


_CHECKED = frozenset((
    "type", "properties", "required", "items", "enum", "additionalProperties",
    "description", "title", "default", "examples", "$schema", "strict",
))  # fmt: skip
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _plainly_valid(value: Any, schema: Any, depth: int) -> bool:
    """The quick yes for the keywords nearly every tool keeps to; False: look closer."""
    if not isinstance(schema, dict) or not schema.keys() <= _CHECKED or depth > _DEPTH:
        return False
    kind = schema.get("type")
    if kind is not None:
        fits = isinstance(value, _KINDS.get(kind, ()) if isinstance(kind, str) else ())
        if not fits or (isinstance(value, bool) and kind != "boolean"):
            return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if isinstance(value, dict):
        return _plainly_valid_members(value, schema, depth)
    if isinstance(value, list) and "items" in schema:
        return all(_plainly_valid(item, schema["items"], depth + 1) for item in value)
    return True


def _plainly_valid_members(value: Json, schema: Json, depth: int) -> bool:
    declared = schema.get("properties") or {}
    needed = schema.get("required", ())
    if not isinstance(declared, dict) or not all(name in value for name in needed):
        return False
    if schema.get("additionalProperties", True) is not True and not value.keys() <= declared.keys():
        return False
    return all(
        _plainly_valid(member, declared[name], depth + 1)
        for name, member in value.items()
        if name in declared
    )


def resolved(schema: Any, root: Json) -> Json:
    """The schema a local `$ref` names."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return {}
        pointer = schema.get("$ref")
        if not isinstance(pointer, str):
            return schema
        schema = _pointed(root, pointer)
    return {}


def _pointed(root: Json, pointer: str) -> Any:
    found: Any = root
    if not pointer.startswith("#"):
        return {}
    for step in pointer.lstrip("#/").split("/") if pointer != "#" else ():
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def types(schema: Any, root: Json) -> frozenset[str]:
    """The JSON types a schema allows; empty: any."""
    schema = resolved(schema, root)
    said = schema.get("type")
    if said is not None:
        return frozenset([said] if isinstance(said, str) else filter(_is_text, said))
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    if branches:
        every = [types(branch, root) for branch in branches]
        return frozenset().union(*every) if all(every) else frozenset()
    options = schema.get("enum") or ([schema["const"]] if "const" in schema else ())
    return frozenset(_type_of(option) for option in options)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _type_of(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "array" if isinstance(value, list) else "object"


def properties(schema: Any, root: Json) -> Json:
    found = resolved(schema, root).get("properties")
    return found if isinstance(found, dict) else {}


def required(schema: Any, root: Json) -> tuple[str, ...]:
    return tuple(filter(_is_text, resolved(schema, root).get("required") or ()))


def coerced(value: Any, schema: Any, root: Json, depth: int = 0) -> Any:
    """The value as the schema wants it, where only its form was wrong; what is valid stays."""
    schema = resolved(schema, root)
    if not schema or depth > _DEPTH:
        return value
    if isinstance(value, dict):
        value = _members(value, schema, root, depth)
    elif isinstance(value, list):
        items = schema.get("items") or {}
        value = [coerced(item, items, root, depth + 1) for item in value]
    if not problem(value, {**schema, "$defs": root.get("$defs", {})}):
        return value
    for branch in schema.get("anyOf") or schema.get("oneOf") or ():
        candidate = coerced(value, branch, root, depth + 1)
        if not problem(candidate, resolved(branch, root)):
            return candidate
    return _retyped(value, schema, root)


def _members(value: Json, schema: Json, root: Json, depth: int) -> Json:
    """Names in the schema's spelling; what `additionalProperties: false` forbids goes."""
    declared = properties(schema, root)
    spelled = {plain(name): name for name in declared}
    closed = schema.get("additionalProperties") is False
    members: Json = {}
    for said, member in value.items():
        name = said if said in declared else spelled.get(plain(said), said)
        if name != said and name in value:
            name = said
        if name in declared or not closed:
            members[name] = coerced(member, declared.get(name, {}), root, depth + 1)
    return members


def _retyped(value: Any, schema: Json, root: Json) -> Any:
    """What a text says where no text is wanted; other values are meant as they are written."""
    if not isinstance(value, str):
        return value
    text, wanted = value, types(schema, root)
    bare = text.strip()
    for option in schema.get("enum") or ():
        if isinstance(option, str) and plain(option) == plain(text) and plain(text):
            return option
    if wanted & {"integer", "number"} and _NUMBER.fullmatch(bare):
        number = float(bare)
        return int(number) if number.is_integer() and "number" not in wanted else _exact(bare)
    if "boolean" in wanted and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()]
    if "null" in wanted and bare.lower() in ("null", "none"):
        return None
    if wanted & {"array", "object"} and bare[:1] in ("[", "{"):
        return _from_json(bare)
    return text


def _from_json(text: str) -> Any:
    """JSON inside a string, perhaps with its quotes escaped once more."""
    for form in (text, text.replace('\\"', '"')):
        try:
            return json.loads(form, strict=False)
        except ValueError:
            continue
    try:
        return lenient.read(text).value
    except ValueError:
        return text


def _exact(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)
