"""An OpenAPI document → one page of HTML that needs no other file and no script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from adapters.protocol import Json

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{border-top:1px solid #8886;padding-top:1rem;margin-top:2rem}
table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #8886;padding:.25rem .6rem;text-align:left;vertical-align:top}
code{font-size:.9em}
a{color:light-dark(#0550ae,#7ab7ff)}
"""
_BOUNDS = (
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows hold HTML."""
    lines = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    if not lines:
        return ""
    names = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><tr>{names}</tr>\n" + "\n".join(lines) + "</table>\n"


def reference(document: Json) -> str:
    info = document["info"]
    operations = [
        (_value(f"{method.upper()} {path}"), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    index = "".join(
        f'<li><a href="#{escape(operation["operationId"])}">{address}</a> '
        f"{escape(operation['summary'])}</li>"
        for address, operation in operations
    )
    body = [
        f'<p>{_about(info)} <a href="/">First page</a> · '
        f'<a href="/openapi.json">OpenAPI document</a></p>\n<ul>{index}</ul>\n'
    ]
    body += [_operation(*found) for found in operations]
    body.append(_all_headers(operation for _, operation in operations))
    body.append("<h2>Shapes</h2>\n")
    schemas = document["components"]["schemas"]
    own = re.findall('href="#shape-([^"]+)"', "".join(body))
    names = dict.fromkeys([*filter(schemas.__contains__, own), *schemas])
    body += [_shape(name, schemas[name]) for name in names]
    return page(f"{info['title']} {info['version']}", "".join(body))


def _operation(address: str, operation: Json) -> str:
    told = [
        f'<h2 id="{escape(operation["operationId"])}">{address}</h2>\n<p>{_about(operation)}</p>\n'
    ]
    asked = [
        (_value(one["name"]), escape(one["in"]), _type(one["schema"]), _about(one))
        for one in operation.get("parameters", ())
    ]
    if "security" in operation:
        asked.append(
            ("authorization", "header", "<code>Bearer KEY</code>", "Where keys are asked.")
        )
    told.append(table(("parameter", "in", "type", "meaning"), asked))
    if "requestBody" in operation:
        told.append(f"<p>Body: {_content(operation['requestBody'])}</p>\n")
        told += [_example(one) for one in operation["requestBody"]["content"].values()]
    answers = [
        (escape(status), _about(one), _content(one), _headers(one))
        for status, one in operation["responses"].items()
    ]
    told.append(table(("status", "meaning", "body", "headers"), answers))
    return "".join(told)


def _content(described: Json) -> str:
    return "<br>".join(
        f"{_value(kind)} {_type(one.get('schema') or _event(one['itemSchema']))}"
        for kind, one in described.get("content", {}).items()
    )


def _event(schema: Json) -> Json:
    """What each event of a stream says, before its `[DONE]`; a line is one itself."""
    if "properties" not in schema:
        return schema
    told: Json = schema["properties"]["data"]["anyOf"][0]["contentSchema"]
    return told


def _headers(answer: Json) -> str:
    """By name alone: `_all_headers` says what they mean."""
    return ", ".join(map(_value, answer.get("headers", {})))


def _all_headers(operations: Iterable[Json]) -> str:
    answers = [answer for one in operations for answer in one["responses"].values()]
    told = {name: one for answer in answers for name, one in answer.get("headers", {}).items()}
    rows = [(_value(name), _about(one)) for name, one in told.items()]
    return "<h2>Headers of answers</h2>\n" + table(("header", "meaning"), rows)


def _example(body: Json) -> str:
    if "example" not in body:
        return ""
    shown = json.dumps(body["example"], indent=2, ensure_ascii=False)
    return f"<pre><code>{escape(shown)}</code></pre>\n"


def _shape(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    fields = [
        (_value(field), _type(one), "yes" if field in required else "", _about(one))
        for field, one in schema.get("properties", {}).items()
    ]
    return f'<h3 id="shape-{escape(name)}">{escape(name)}</h3>\n<p>{_about(schema)}</p>\n' + table(
        ("field", "type", "required", "meaning"), fields
    )


def _type(schema: Json) -> str:
    """A schema in one line; other shapes are links."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#shape-{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "const" in schema or "enum" in schema:
        return " or ".join(_value(one) for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}{_bounds(schema)}"
    return escape(str(schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: Json) -> str:
    told = [f"{name} {escape(str(schema[name]))}" for name in _BOUNDS if name in schema]
    if "pattern" in schema:
        told.append(_value(schema["pattern"]))
    return f" ({', '.join(told)})" if told else ""


def _value(value: Any) -> str:
    return f"<code>{escape(str(value))}</code>"


def _about(described: Json) -> str:
    """Prose with `code` in it."""
    pieces = described.get("description", "").split("`")
    return "".join(_value(one) if odd % 2 else escape(one) for odd, one in enumerate(pieces))
