"""Tools and the choice among them: the client's own become functions, Anthropic's go to Claude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Code, Note, Receipt

_SEARCH = "web_search"
_COMMAND: Mapping[str, Json] = {
    "command": {"type": "string", "description": "The command to run."},
    "restart": {"type": "boolean", "description": "True to start the shell anew."},
}
_EDIT: Mapping[str, Json] = {
    "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
    "path": {"type": "string", "description": "Absolute path of a file or folder."},
    "file_text": {"type": "string", "description": "For create: the text of the file."},
    "old_str": {"type": "string", "description": "For str_replace: the text to replace."},
    "new_str": {"type": "string", "description": "For str_replace and insert: the new text."},
    "insert_line": {"type": "integer", "description": "For insert: the line to insert behind."},
    "view_range": {"type": "array", "items": {"type": "integer"}},
}
_REMEMBER: Mapping[str, Json] = {
    "command": {
        "type": "string",
        "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
    },
    "path": {"type": "string", "description": "Below /memories."},
    "file_text": {"type": "string"},
    "old_str": {"type": "string"},
    "new_str": {"type": "string"},
    "insert_line": {"type": "integer"},
    "insert_text": {"type": "string"},
    "old_path": {"type": "string"},
    "new_path": {"type": "string"},
    "view_range": {"type": "array", "items": {"type": "integer"}},
}
# Anthropic's tools that the client runs, by the beginning of their types.
_RUN_BY_CLIENT: Mapping[str, tuple[str, Mapping[str, Json], tuple[str, ...]]] = {
    "bash_": ("Run a command in a shell that is kept open.", _COMMAND, ()),
    "text_editor_": ("View, create and edit text files.", _EDIT, ("command", "path")),
    "memory_": ("Read and write files of a memory.", _REMEMBER, ("command",)),
}


_CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}


class ReadTools(NamedTuple):
    functions: tuple[Json, ...] = ()
    lost: Receipt = ()
    """For other models than Claude."""
    hosted: tuple[str, ...] = ()
    """Types of those that Anthropic runs."""
    declared: tuple[Json, ...] = ()
    """All of them, as the client said it."""
    marked: bool = False
    """One has a cache breakpoint."""
    search: bool = False
    """A search of the web is among them."""

    def refusal(self, choice: Json | None) -> BadRequest | None:
        """An answer without the one thing that was asked for would be an invented one."""
        forced = (choice or {}).get("type") == "tool" and not self.has((choice or {}).get("name"))
        if not self.hosted or (self.functions and not forced):
            return None
        what = "web search" if self.search else f"tool of type '{self.hosted[0][:60]}'"
        return BadRequest(
            f"This model has no {what} here: it is a tool of Anthropic's own service. Give the "
            "model a search in the gateway's config (`server_tools`), or send tools of your own.",
            param="tools",
            code="unsupported_tool",
        )

    def has(self, name: str | None) -> bool:
        """Whether there is a function of this name."""
        return any(function["function"]["name"] == name for function in self.functions)


NO_TOOLS = ReadTools()


def read_tools(tools: Sequence[Json]) -> ReadTools:
    functions: list[Json] = []
    lost: list[Note] = []
    hosted: list[str] = []
    for at, tool in enumerate(tools):
        kind, where = tool.get("type") or "custom", f"tools[{at}]"
        if kind == "custom":
            functions.append(_function(tool))
            if tool.get("input_examples"):
                text = "examples of a tool's input are read by Claude alone"
                lost.append(Note("member_dropped", f"{where}.input_examples", text))
        elif known := next(
            (said for name, said in _RUN_BY_CLIENT.items() if kind.startswith(name)), None
        ):
            functions.append(_described(tool, *known))
            text = f"'{kind[:60]}' was described as a function"
            lost.append(Note("item_as_function", where, text))
        else:
            hosted.append(kind)
            text = f"'{kind[:60]}' is a tool that only Claude's own service has"
            # Of a search it is told only where the gateway has none of its own.
            code: Code = "tool_dropped" if kind.startswith(_SEARCH) else "parameter_dropped"
            lost.append(Note(code, where, text))
    _require_distinct(functions)
    read = tuple(functions), tuple(lost), tuple(hosted), tuple(tools)
    marked = any(tool.get("cache_control") for tool in tools)
    return ReadTools(*read, marked, any(kind.startswith(_SEARCH) for kind in hosted))


def _require_distinct(functions: Sequence[Json]) -> None:
    names = [function["function"]["name"] for function in functions]
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        text = f"tools: Tool names must be unique, and there are two named '{name}'."
        raise BadRequest(text, param="tools")


def _function(tool: Json) -> Json:
    schema = {name: said for name, said in tool["input_schema"].items() if name != "$schema"}
    function: Json = {"name": tool["name"], "parameters": schema}
    if tool.get("description"):
        function["description"] = tool["description"]
    if tool.get("strict") is not None:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}


def _described(
    tool: Json, description: str, properties: Mapping[str, Json], required: Sequence[str]
) -> Json:
    schema = {"type": "object", "properties": {**properties}, "required": [*required]}
    name = tool.get("name") or tool["type"]
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def read_choice(choice: Json | None, tools: ReadTools) -> tuple[str | Json | None, bool]:
    """`tool_choice`, and whether calls may come together."""
    said = choice or {}
    parallel = not said.get("disable_parallel_tool_use")
    kind, name = said.get("type"), said.get("name")
    if not tools.functions or kind is None:
        return None, parallel
    if kind != "tool":
        return _CHOICES[kind], parallel
    if tools.has(name):
        return {"type": "function", "function": {"name": name}}, parallel
    if tools.hosted:
        return None, parallel  # one of Anthropic's own, as it seems
    text = f"tool_choice: Tool '{name}' not found in provided tools"
    raise BadRequest(text, param="tool_choice")
