"""The insides of the formats models were trained on: body → what was found in it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from adapters.shared.schema.walk import properties
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.formats.elements import elements, gathered
from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.formats.synonyms import ARGUMENTS, HOLDERS, NAMES
from middleware.wrappers.emulation.judge import lenient_json as lenient
from middleware.wrappers.emulation.judge.names import Names
from middleware.wrappers.emulation.judge.strict_json import parse_strict

JSON_START = re.compile(r"\{|\[(?!ARGS\]|CALL_ID\])")
_LEAD_NAME = re.compile(
    r"\s*+(?:functions[.:])?(?P<name>[\w.\-]++)(?::\d++)?"
    r"(?:\s++|\[CALL_ID\]\w*+|\[ARGS\]|<\|[^<>|]*+\|>|<｜[^｜]*+｜>|```\w*+)*+"
)
_SEPARATOR = re.compile(r"\s*+\w++\s*+<[|｜]tool(?:\\?[▁_]| )sep[|｜]>")
_BEFORE_FENCE = re.compile(r"\s*[\w.\-]+\s*```")
_PARAMETER = re.compile(
    r"<(?P<tag>parameter|param)(?:\s*+=\s*|(?:\s|Ġ)*+name\s*+=\s*|\b)[\"']?(?P<key>[^<>\"']*+)[\"']?[^<>]*+>"
    r"(?P<value><!\[CDATA\[(?:.*?\]\]>|.*\Z)|.*?)"
    r"(?:</(?P=tag)>|(?=<(?:parameter|param)\b[=\s])|\Z)",
    re.DOTALL,
)
_CDATA = re.compile(r"\A\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
# The whole name: what stands before a blank or a slash in it may be another tool's.
_XML_NAME = re.compile(
    r"\s*(?:[\"'](?P<quoted>[^<>\"']*)[\"']|(?P<bare>[^<>\"'\s{]+?)(?=\s*(?:/?>|[\"'{<]|\n|$)))"
    r"[\"']?\s*(?P<alone>/?)>?"
)
_ELEMENT = re.compile(r"<([\w.\-]+)>")
# GLM's pairs; others write them with a mark of their own, or with the type between the two.
_ARG_PAIR = re.compile(
    r"<[\w|]*arg_key(?::\w+)?>(?P<key>[^<]*)</[\w|]*arg_key(?::\w+)?>(?:\s|\\n)*"
    r"(?:<[\w|]*arg_type>[^<]*</[\w|]*arg_type>\s*)?<[\w|]*arg_value(?::\w+)?>(?P<value>.*?)"
    r"(?:</[\w|]*arg_value(?::\w+)?>|(?=<[\w|]*arg_key(?::\w+)?>)|\Z)",
    re.DOTALL,
)
_SOLAR_PAIR = re.compile(
    r"<\|tool_arg:start\|>(?P<key>[^<]*)<\|tool_arg:value\|>(?P<value>.*?)"
    r"(?:<\|tool_arg:end\|>|(?=<\|tool_arg:start\|>)|\Z)",
    re.DOTALL,
)
_WORD = re.compile(r"[\s,]*+(?P<key>\w++)=(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s,\"'<>]++)")
_SPOKEN = re.compile(
    r'(?P<quote><\|"\|>|<escape>)(?P<said>.*?)(?:(?P<end>(?P=quote))|\Z)', re.DOTALL
)
_CALLS = re.compile(r"\s*\[?\s*[A-Za-z_][\w.\-]*\(")
_FIELD = re.compile(r'\b(\w+)="([^"]*)"')
_K3_ARGUMENT = re.compile(
    r"<\|open\|>\s*argument(?P<head>[^<]*)<\|sep\|>(?P<value>.*?)(?:<\|close\|>|\Z)", re.DOTALL
)
_K3_HEAD = re.compile(r"[^<]*")


def parse(text: str) -> Any:
    """Strict JSON, else what the lenient reader makes of it; raise ValueError."""
    try:
        return parse_strict(text)
    except ValueError:
        return lenient.read(text).value


def calls_in(value: Any) -> Iterator[RawCall]:
    """The calls an object, or a list of objects, spells out."""
    if isinstance(value, list):
        for item in value:
            yield from calls_in(item)
    elif isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        yield from calls_in(value["tool_calls"])
    elif isinstance(value, dict) and (call := _call(value)):
        yield call


def _call(members: dict[str, Any]) -> RawCall | None:
    if holder := _member(members, HOLDERS, dict):
        return None if "parameters" in members[holder] else _call(members[holder])
    key = _member(members, NAMES, str)
    if not key or not members[key] or _is_declaration(members):
        return None
    place = next((name for name in ARGUMENTS if name in members and name != key), None)
    return RawCall(members[key], _given(members[place] if place else None), bare=place is None)


def names_another(text: str, tool: Tool) -> bool:
    """Is this object a call of another tool, and not this one's arguments?"""
    value = parse(text)
    if not isinstance(value, dict):
        return False
    declared, names = properties(tool.parameters), Names((tool.name,))
    foreign = {key: member for key, member in value.items() if key not in declared}
    return any(names.find(call.name) is None for call in calls_in(foreign))


def _given(arguments: Any) -> str | dict[str, Any] | None:
    if arguments is None or isinstance(arguments, dict | str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


def _is_declaration(members: dict[str, Any]) -> bool:
    """A tool as a request declares it: what it takes, not what it is given."""
    schema = members.get("parameters")
    return isinstance(schema, dict) and "properties" in schema and schema.get("type") == "object"


def _member(members: dict[str, Any], names: tuple[str, ...], kind: type) -> str:
    """The first of these members that is there and of this kind."""
    return next((name for name in names if name in members and isinstance(members[name], kind)), "")


def json_calls(body: str) -> list[RawCall]:
    """Objects that name a tool, or a name before the object with its arguments."""
    if _CALLS.match(body):
        return python_calls(body)
    start = JSON_START.search(body)
    if not start:
        name = _LEAD_NAME.fullmatch(body)
        return [RawCall(name["name"], "{}")] if name else []
    lead = _LEAD_NAME.fullmatch(body, 0, start.start())
    if lead:
        return [RawCall(lead["name"], body[start.start() :])]
    try:
        return list(calls_in(parse(body[start.start() :].strip())))
    except ValueError:
        return []


def llama_calls(body: str) -> list[RawCall]:
    """Llama's own tools are written as methods: `brave_search.call(query="…")`."""
    calls = json_calls(body)
    if not _CALLS.match(body):
        return calls
    return [call._replace(name=call.name.removesuffix(".call")) for call in calls]


def keyed_calls(body: str) -> list[RawCall]:
    """Apertus: `[{"name": {arguments}}]`."""
    try:
        value = parse(body.strip())
    except ValueError:
        return []
    items = value if isinstance(value, list) else [value]
    return [
        RawCall(name, arguments)
        for item in items
        if isinstance(item, dict)
        for name, arguments in item.items()
        if isinstance(arguments, dict)
    ]


def deepseek_calls(body: str) -> list[RawCall]:
    """`name<sep>{…}`, or with the kind before the name: `function<sep>name` and a fence."""
    kind = _SEPARATOR.match(body)
    rest = body[kind.end() :] if kind else ""
    return json_calls(rest if _BEFORE_FENCE.match(rest) else body)


def xml_calls(body: str) -> list[RawCall]:
    """`name>` with `<parameter=key>value</parameter>`, or with a JSON object."""
    head = _XML_NAME.match(body)
    if not head:
        return []
    inside = body[head.end() :]
    if inside.strip()[:1] == "{":
        return [RawCall(_name(head), inside.strip())]
    pairs = [(pair["key"].strip(), _value(pair["value"])) for pair in _PARAMETER.finditer(inside)]
    if not pairs and inside.strip()[:1] == "<":
        pairs = _elements(inside)
    return [RawCall(_name(head), pairs)]


def _name(head: re.Match[str]) -> str:
    return head["quoted"] or head["bare"] or ""


def _elements(text: str) -> list[tuple[str, str]]:
    """The outermost elements and what they hold."""
    pairs, at = [], 0
    while element := _ELEMENT.search(text, at):
        end = text.find(f"</{element[1]}>", element.end())
        if end < 0:
            break
        pairs.append((element[1], text[element.end() : end]))
        at = end + len(element[1]) + 3
    values = gathered(pairs).items()
    return [(key, text if isinstance(text, str) else json.dumps(text)) for key, text in values]


def marked_calls(mark: str, body: str) -> list[RawCall]:
    """The same behind a mark in every tag."""
    return xml_calls(body.replace(mark, ""))


def step_calls(body: str) -> list[RawCall]:
    """Step 3: the kind and the name may stand once more before the invocation."""
    _, invoked, inside = body.partition("<steptml:invoke name=")
    return marked_calls("steptml:", inside) if invoked else deepseek_calls(body)


def spaced_calls(body: str) -> list[RawCall]:
    """MiniMax M3: every tag behind the model's own name-space token."""
    head = _XML_NAME.match(body)
    if not head:
        return []
    return [RawCall(_name(head), elements(body[head.end() :]))]


def _value(text: str) -> str:
    """A parameter's text: the line ends that only set it apart are not part of it."""
    if cdata := _CDATA.match(text):
        return cdata[1]
    if text[:1] != "\n":
        return text
    return text[1:-1] if text[-1:] == "\n" and len(text) > 1 else text[1:]


def tagged_calls(body: str) -> list[RawCall]:
    """What stands between `<tool_call>` tags: JSON, or GLM's name with keys and values."""
    if body.lstrip()[:1] in ("{", "["):
        return json_calls(body)
    if body.lstrip()[:1] == "<":
        return list(calls_in(dict(_elements(body))))
    if _CALLS.match(body):
        return python_calls(body)
    head = re.match(r"(?:\s|\\n)*(?P<name>[\w.\-]+)", body)
    if not head:
        return []
    given = list(_ARG_PAIR.finditer(body))
    behind = body[head.end() : given[0].start() if given else len(body)]
    pairs = [(pair["key"].strip(), pair["value"]) for pair in given]
    behind = behind.replace("<tool_sep>", "").replace("\\n", "").strip()
    if not behind:
        return [RawCall(head["name"], pairs)]
    words = [] if given else _words(behind)
    return [RawCall(head["name"], words)] if words else []


def _words(text: str) -> list[tuple[str, str]]:
    """`key=value key="value"`; nothing where anything else stands among them."""
    pairs, at = [], 0
    while word := _WORD.match(text, at):
        pairs.append((word["key"], word["value"].strip("\"'")))
        at = word.end()
    return pairs if not text[at:].strip() else []


def solar_calls(body: str) -> list[RawCall]:
    """Solar Open 2: the name on the first line, then keys and values."""
    name, _, inside = body.lstrip().partition("\n")
    pairs = [(pair["key"].strip(), pair["value"]) for pair in _SOLAR_PAIR.finditer(inside)]
    return [RawCall(name.strip(), pairs)] if name.strip() else []


def python_calls(body: str) -> list[RawCall]:
    """`[name(key=value), …]`, or the same as JSON."""
    text = body.strip()
    if re.match(r"\[?\s*\{", text):
        return json_calls(text)
    listed = text if text.startswith("[") else f"[{text}]"
    try:
        return list(calls_in(lenient.read_calls(listed).value))
    except ValueError:
        return []


def gemma_calls(body: str) -> list[RawCall]:
    """`call:name{key:<|"|>text<|"|>}`, or with `<escape>` around the text."""
    head = re.match(r"\s*call:(?P<name>[^\s{(]+(?:[^\S\n]+[^\s{(]+)*)", body)
    if not head:
        return []
    quoted = _SPOKEN.sub(_quoted, body[head.end() :])
    try:
        value = lenient.read(quoted).value
    except ValueError:
        value = quoted
    return [RawCall(head["name"], value)]


def _quoted(spoken: re.Match[str]) -> str:
    text = spoken["said"]
    if not spoken["end"]:  # what closes the object was meant to stand behind the text
        text = text.rstrip().rstrip("}")
    return json.dumps(text, ensure_ascii=False)


def k3_calls(body: str) -> list[RawCall]:
    """Kimi K3: `tool="name"`, then arguments that name their key and type."""
    head = _K3_HEAD.match(body)
    fields = _fields(head[0]) if head else {}
    pairs = [
        (_fields(argument["head"]).get("key", ""), argument["value"])
        for argument in _K3_ARGUMENT.finditer(body)
    ]
    return [RawCall(fields["tool"], pairs)] if fields.get("tool") else []


def _fields(head: str) -> dict[str, str]:
    return {key: html.unescape(value) for key, value in _FIELD.findall(head)}


def input_calls(body: str) -> list[RawCall]:
    """`name</tool><tool_input>…`, and an object or the text of the one parameter."""
    name, closed, rest = body.partition("</tool>")
    _, opened, text = rest.partition("<tool_input>")
    return [RawCall(name.strip(), text.strip())] if closed and (opened or not rest.strip()) else []


def message_calls(body: str) -> list[RawCall]:
    """A framed message: the last invocation in it counts."""
    return json_calls(body.rpartition("<|content_invoke_tool_json|>")[2])
