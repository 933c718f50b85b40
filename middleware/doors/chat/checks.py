"""What pydantic cannot say of a chat request: which fields fit together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes


def check_fields(data: Json, notes: Notes, apart: Collection[str] = ()) -> None:
    """Check all but the fields that are checked apart."""
    for field, check in _CHECKS.items():
        if data.get(field) is not None and field not in apart:
            check(data, notes)


def _check_single_choice(data: Json, _: Notes) -> None:
    if data["n"] > 1:
        raise BadRequest(
            "'n' greater than 1 is not supported: send the request n times instead.",
            code="unsupported_parameter",
            param="n",
        )


def _check_stream_options(data: Json, notes: Notes) -> None:
    if data.get("stream") is not True:
        raise BadRequest(
            "'stream_options' is only allowed with 'stream': true. Leave it out of plain requests.",
            param="stream_options",
        )
    for name, wanted in data["stream_options"].items():
        if name != "include_usage" and wanted not in (None, False):
            text = "the gateway's chunks have nothing like it"
            notes.add("parameter_dropped", f"stream_options.{name}", text)


def _check_logprobs(data: Json, _: Notes) -> None:
    if data["top_logprobs"] and data.get("logprobs") is not True:
        raise BadRequest("'top_logprobs' needs 'logprobs': true.", param="top_logprobs")


def _check_logit_bias(data: Json, _: Notes) -> None:
    for token, bias in data["logit_bias"].items():
        if type(bias) not in (int, float) or not -100 <= bias <= 100:
            where = f"logit_bias.{token[:20]}"
            raise BadRequest(
                f"Invalid value for '{where}': expected a number from -100 to 100.", param=where
            )


def _check_tools(data: Json, _: Notes) -> None:
    require_distinct_names(data["tools"])


def require_distinct_names(tools: Iterable[Json]) -> None:
    names = set()
    for position, tool in enumerate(tools):
        kind = tool["type"]
        name = tool[kind]["name"]
        if name in names:
            where = f"tools[{position}].{kind}.name"
            raise BadRequest(
                f"Two tools have the name '{name}' (the second is '{where}'). Tool names must be "
                "unique.",
                param=where,
            )
        names.add(name)


def _check_choice(data: Json, notes: Notes) -> None:
    choice, tools = data["tool_choice"], data.get("tools")
    if tools:
        if not isinstance(choice, str):
            require_known(choice, tools)
    elif choice == "auto":
        notes.add("tool_choice_ignored", "tool_choice", "the request has no tools")
    elif choice != "none":
        raise BadRequest(
            "'tool_choice' asks for a tool call, but the request has no 'tools'. Send the tools, "
            "or leave 'tool_choice' out.",
            param="tool_choice",
        )


def _check_parallel(data: Json, notes: Notes) -> None:
    if not data.get("tools"):
        notes.add("parameter_dropped", "parallel_tool_calls", "the request has no tools")


def require_known(choice: Json, tools: Sequence[Json]) -> None:
    """Refuse the choice of a tool that the request does not have."""
    allowed = choice["type"] == "allowed_tools"
    known = {(tool["type"], tool[tool["type"]]["name"]) for tool in tools}
    for one in choice["allowed_tools"]["tools"] if allowed else (choice,):
        kind = one["type"]
        name = one[kind]["name"]
        if (kind, name) not in known:
            raise BadRequest(
                f"'tool_choice' names the {kind} tool {name!r}, which is not in 'tools'.",
                param="tool_choice",
            )


_CHECKS: Mapping[str, Callable[[Json, Notes], None]] = {
    "n": _check_single_choice,
    "stream_options": _check_stream_options,
    "top_logprobs": _check_logprobs,
    "logit_bias": _check_logit_bias,
    "tools": _check_tools,
    "tool_choice": _check_choice,
    "parallel_tool_calls": _check_parallel,
}
"""What pydantic cannot say, by the field it is about."""
