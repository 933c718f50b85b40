"""What a model is told so that it can call tools: one worked example, no placeholders to echo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import orjson

from adapters.shared.schema.walk import properties, required
from adapters.shared.toolbox import Mode, Tool
from middleware.wrappers.emulation.judge.names import plain
from middleware.wrappers.emulation.judge.schemas import types

_FLAT = frozenset(("string", "integer", "number", "boolean", "null"))


class Ask(NamedTuple):
    """How tools may be called on this request."""

    mode: Mode = "auto"
    named: str = ""
    parallel: bool = True
    constrained: bool = False
    """The upstream is held to the form: an example would only be copied. It is told of JSON even
    where the form is our block: SmolLM2 then chose the right tool for 37 of 47 questions, told of
    the block without an example for 28, with one for 35.
    """


class _Words(NamedTuple):
    form: str
    several: str
    one: str
    otherwise: str
    must: str
    must_named: str
    json: str
    tools: str
    example: str


# The prose; the words of the protocol stay as they are.
_ENGLISH = _Words(
    form="You can call tools. To call a tool, write exactly this block and nothing after it:\n"
    "USE_TOOL\nTOOL_NAME: <one tool name from the list>\nTOOL_ARGS: <one JSON object on one line>",
    several="To make several calls, write several such blocks.",
    one="Make at most one call.",
    otherwise="If no tool is needed, answer the user directly and do not write USE_TOOL.",
    must="You must call at least one tool.",
    must_named='You must call the tool "{name}".',
    json="You can call tools. To call one, answer with one JSON object and nothing else:\n"
    '{"name": <one tool name from the list>, "arguments": <one JSON object>}',
    tools="Tools:",
    example='Example, for a tool {signature} and the question "{question}":',
)
_CHINESE = _Words(
    form="你可以调用工具。要调用工具，请只写出下面这个块，之后不要再写任何内容：\n"
    "USE_TOOL\nTOOL_NAME: <列表中的一个工具名>\nTOOL_ARGS: <写在一行的一个 JSON 对象>",
    several="需要多次调用时，写出多个这样的块。",
    one="最多调用一次。",
    otherwise="如果不需要工具，请直接回答用户，不要写 USE_TOOL。",
    must="你必须至少调用一个工具 (you must call at least one tool)。",
    must_named='你必须调用该工具 (you must call the tool "{name}")。',
    json="你可以调用工具。要调用工具，请只回答一个 JSON 对象：\n"
    '{"name": <列表中的一个工具名>, "arguments": <一个 JSON 对象>}',
    tools="工具：",
    example="示例，工具 {signature}，问题“{question}”：",
)

AFTER_RESULTS = "Answer the user, or call another tool in the same format."
PLACEHOLDERS = frozenset(("<one tool name from the list>", "<列表中的一个工具名>"))


def _own_lines() -> frozenset[str]:
    """The sentences above that nobody else would write as a line of its own."""
    words = (_ENGLISH, _CHINESE)
    texts = [
        (each.form, each.several, each.one, each.otherwise, each.must, each.json) for each in words
    ]
    lines = "\n".join((AFTER_RESULTS, *(text for group in texts for text in group))).split("\n")
    return frozenset(line for line in lines if not line.startswith(("USE_TOOL", "TOOL_")))


OWN_LINES = _own_lines()


class _Example(NamedTuple):
    name: str
    signature: str
    question: str
    arguments: str


# None of them is ever declared: the one least like the declared tools is shown.
_EXAMPLES = (
    _Example("get_time", "get_time(city: string)", "What time is it in Oslo?", '{"city": "Oslo"}'),
    _Example("roll_dice", "roll_dice(sides: integer)", "Roll a d20.", '{"sides": 20}'),
    _Example("play_song", "play_song(title: string)", "Play Clair de Lune.",
             '{"title": "Clair de Lune"}'),
    _Example("water_plant", "water_plant(plant: string, cups: number)", "Give the fern two cups.",
             '{"plant": "fern", "cups": 2}'),
)  # fmt: skip


def instructions(tools: Sequence[Tool], ask: Ask, language_of: str = "") -> str:
    """The text that is added to the caller's own system text; P1 of the specification."""
    words = _CHINESE if any("\u4e00" <= letter <= "\u9fff" for letter in language_of) else _ENGLISH
    parts = [_rules(words, ask), words.tools + "\n" + "\n".join(map(described, tools))]
    if not ask.constrained:
        parts.append(_example(tools, words))
    return "\n\n".join(parts)


def _rules(words: _Words, ask: Ask) -> str:
    rules = [words.json] if ask.constrained else [words.form]
    if not ask.constrained:
        rules.append(words.several if ask.parallel else words.one)
    must: Mapping[str, str] = {
        "named": words.must_named.format(name=ask.named),
        "required": words.must,
    }
    return "\n".join((*rules, must.get(ask.mode, words.otherwise)))


def _example(tools: Sequence[Tool], words: _Words) -> str:
    def likeness(example: _Example) -> float:
        name = plain(example.name)
        ratios = (SequenceMatcher(None, name, plain(tool.name)).ratio() for tool in tools)
        return max(ratios, default=0.0)

    example = min(_EXAMPLES, key=likeness)
    head = words.example.format(signature=example.signature, question=example.question)
    return f"{head}\n{block(example.name, example.arguments)}"


def block(name: str, arguments: str) -> str:
    """A call in the canonical form."""
    return f"USE_TOOL\nTOOL_NAME: {name}\nTOOL_ARGS: {arguments}"


def described(tool: Tool) -> str:
    """A tool as the model is told of it: line by line where it is flat, else as JSON Schema."""
    head = f"- {tool.name}: {_one_line(tool.description)}".rstrip(": ")
    schema = tool.parameters
    declared, needed = properties(schema), required(schema)
    if not declared:
        return head
    if all(map(_is_flat, declared.values())):
        lines = [_parameter(name, declared[name], name in needed) for name in declared]
        return "\n".join((head, *lines))
    return f"{head}\n    parameters: {orjson.dumps(schema).decode()}"


def signature(tool: Tool) -> str:
    """A tool in one line, to remind a model of it."""
    schema = tool.parameters
    declared, needed = properties(schema), required(schema)
    parameters = (
        f"{name}{'' if name in needed else '?'}: {_type_name(declared[name])}" for name in declared
    )
    return f"{tool.name}({', '.join(parameters)})"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _is_flat(parameter: Any) -> bool:
    wanted = types(parameter)
    if wanted == {"array"}:
        items = parameter.get("items")
        return bool(types(items)) and _is_flat(items)
    return wanted <= _FLAT


def _type_name(parameter: Any) -> str:
    wanted = sorted(types(parameter)) or ["any"]
    if wanted == ["array"]:
        return f"array of {_type_name(parameter.get('items'))}"
    return " or ".join(wanted)


def _parameter(name: str, parameter: Any, needed: bool) -> str:
    schema = parameter if isinstance(parameter, dict) else {}
    line = f"    {name} ({_type_name(schema)}{', required' if needed else ''})"
    words = _one_line(str(schema.get("description") or ""))
    if options := schema.get("enum"):
        words = f"{words} one of {orjson.dumps(options).decode()}".strip()
    return f"{line}: {words}" if words else line


def decision(tools: Sequence[Tool], question: str, language_of: str) -> str:
    """P2: ask a model only whether and how to call; for pipelines where another one answers."""
    ask = instructions(tools, Ask(), language_of).replace(
        _ENGLISH.otherwise, "If no tool is needed, write only NO_TOOL."
    )
    ask = ask.replace(_CHINESE.otherwise, "如果不需要工具，只写 NO_TOOL。")
    rule = "If one of the tools gives what the answer needs, call it."
    return f"{rule}\n\n{ask}\n\nThe user's question:\n{question.strip()}"
