"""The tools of a request → those of a chat, and the names by which the client knows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import CallKind, Carried, Json
from adapters.receipts import Note, Notes
from adapters.shared.toolbox import alias

_LONGEST_NAME = 64
_OWN = ("function", "custom")
_SEARCH = "web_search"
"""Begins the name of each version of it."""


QUIET = frozenset({"local_shell_call", "tool_search_call"})
"""Items of calls whose arguments are an object: they come whole."""
_DEFINED: Mapping[str, Json] = {
    "local_shell": {
        "description": "Runs a command on the user's machine.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "array", "items": {"type": "string"}},
                "working_directory": {"type": "string"},
                "timeout_ms": {"type": "integer"},
            },
            "required": ["command"],
        },
    },
    "tool_search": {
        "description": "Finds further tools; the result declares them.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}
"""Tools of OpenAI's that clients run, as functions."""


def _is_defined(tool: Json) -> bool:
    kind = tool["type"]
    return kind == "local_shell" or (kind == "tool_search" and tool.get("execution") == "client")


def shown(kind: str, arguments: Json) -> Json:
    """What was called, as members of its item."""
    if kind == "tool_search_call":
        return {"execution": "client", "arguments": arguments}
    command = arguments.get("command") or []
    command = ["bash", "-lc", command] if isinstance(command, str) else command
    return {"action": {"type": "exec", "env": {}, **arguments, "command": command}}


def flat_name(namespace: str | None, name: str) -> str:
    """A namespace's tool as models know it: chat has no namespaces."""
    if not namespace:
        return name
    joined = f"{namespace}__{name}"  # which every upstream takes as it is
    return joined if len(joined) <= _LONGEST_NAME else alias(joined)


@dataclass(slots=True)
class ToolSet:
    tools: list[Json] = field(default_factory=list)
    """As chat declares them."""
    spaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Flat name → namespace and name."""
    hosted: dict[str, str] = field(default_factory=dict)
    """Type of a tool that OpenAI runs → where it is declared."""
    defined: set[str] = field(default_factory=set)
    """Names of those that OpenAI defines and the client runs."""

    def declare(
        self, tools: Iterable[Json], where: str, notes: Notes, known: Collection[str] = ()
    ) -> None:
        """`known`: names of tools that are there already, and may be found again."""
        for position, tool in enumerate(tools):
            at, kind = f"{where}[{position}]", tool["type"]
            if _is_defined(tool):
                self._define(tool)
            elif kind != "namespace" and kind not in _OWN:
                self.hosted.setdefault(kind, at)
            else:
                for place, name, one in self._named_tools(tool, at):
                    if name not in known:
                        self._add(one, name, place, notes)

    def _named_tools(self, tool: Json, at: str) -> Iterator[tuple[str, str, Json]]:
        """Where each stands, its flat name, and what it says."""
        if tool["type"] != "namespace":
            yield at, tool["name"], tool
            return
        for number, member in enumerate(tool["tools"]):
            name = flat_name(tool["name"], member["name"])
            self.spaces[name] = tool["name"], member["name"]
            described = {**member, "description": _about(member, tool)}
            yield f"{at}.tools[{number}]", name, described

    def _define(self, tool: Json) -> None:
        name = tool["type"]
        self.defined.add(name)
        said = {key: tool[key] for key in ("description", "parameters") if tool.get(key)}
        self.tools.append(
            {"type": "function", "function": {"name": name, **_DEFINED[name], **said}}
        )

    def names(self) -> frozenset[str]:
        return frozenset(tool[tool["type"]]["name"] for tool in self.tools)

    def _add(self, tool: Json, name: str, at: str, notes: Notes) -> None:
        kind = tool["type"]
        said: Json = {"name": name, "description": tool.get("description")}
        if kind == "function":
            said |= {key: tool.get(key) for key in ("parameters", "strict")}
        elif (grammar := _grammar(tool.get("format"))) is not None:
            notes.add("grammar_as_words", f"{at}.format", "models are told of it, not held to it")
            said["description"] = "\n\n".join(filter(None, (said["description"], grammar)))
        known = {key: value for key, value in said.items() if value is not None}
        self.tools.append({"type": kind, kind: known})

    def require_distinct(self) -> None:
        seen: set[str] = set()
        for tool in self.tools:
            name = tool[tool["type"]]["name"]
            if name in seen:
                raise BadRequest(
                    f"Two tools have the name '{name}'. Tool names must be unique.", param="tools"
                )
            seen.add(name)

    def choice(self, choice: Any) -> str | Json | None:
        """`tool_choice` as chat has it; None: the model decides."""
        if isinstance(choice, str):
            return self._word(choice)
        if choice is None:
            return None
        if choice["type"] == "allowed_tools":
            return self._allowed(choice)
        if choice["type"] in _OWN:
            return self._named(choice)
        if choice["type"] in self.defined:
            return {"type": "function", "function": {"name": choice["type"]}}
        return None

    def _word(self, choice: str) -> str | None:
        if choice == "required" and not (self.tools or self.hosted):
            raise BadRequest(
                "'tool_choice' asks for a tool call, but the request has no 'tools'. Send the "
                "tools, or leave 'tool_choice' out.",
                param="tool_choice",
            )
        return choice if self.tools else None

    def _allowed(self, choice: Json) -> str | Json:
        own = [self._named(one) for one in choice["tools"] if one["type"] in _OWN]
        allowed = {"mode": choice["mode"], "tools": own}
        return {"type": "allowed_tools", "allowed_tools": allowed} if own else "none"

    def _named(self, choice: Json) -> Json:
        kind, name = choice["type"], flat_name(choice.get("namespace"), choice.get("name") or "")
        if not any(tool.get(kind, {}).get("name") == name for tool in self.tools):
            raise BadRequest(
                f"'tool_choice' names the {kind} tool {name!r}, which is not in 'tools'.",
                param="tool_choice",
            )
        return {"type": kind, kind: {"name": name}}

    def native(self, choice: Any, notes: Notes) -> Carried | None:
        """A search of the web, which a server tool may do instead; others nobody runs here."""
        if not self.hosted and not isinstance(choice, dict):
            return None
        lost: list[Note] = []
        others: list[Note] = []
        for kind, at in self.hosted.items():
            told = lost.append if kind.startswith(_SEARCH) else others.append
            told(_dropped(kind, at))
        notes.add_all(tuple(others))
        refusal = self._refusal(choice)
        if refusal is not None and not lost:
            raise refusal
        return Carried("responses", None, tuple(lost), refusal, search=True) if lost else None

    def _refusal(self, choice: Any) -> BadRequest | None:
        """Of a tool that is forced or alone, which nobody runs; a search may still be."""
        wanted = self._forced(choice) or ("" if self.tools else next(iter(self.hosted), ""))
        if not wanted:
            return None
        if not wanted.startswith(_SEARCH):
            raise _refusal(wanted)
        return _refusal(wanted)

    def _forced(self, choice: Any) -> str:
        """The hosted tool that must be called."""
        kind: str = choice["type"] if isinstance(choice, dict) else "allowed_tools"
        return "" if kind in ("allowed_tools", *_OWN, *self.defined) else kind

    def item_kind(self, name: str, kind: CallKind) -> str:
        """The kind of item that a call becomes."""
        if name in self.defined:
            return f"{name}_call"
        return "custom_tool_call" if kind == "custom" else "function_call"

    def own_name(self, name: str) -> Json:
        """Namespace and name of what was called, as members of its item."""
        space = self.spaces.get(name)
        return {"name": name} if space is None else {"namespace": space[0], "name": space[1]}


def _about(member: Json, namespace: Json) -> str | None:
    return member.get("description") or namespace.get("description")


def _grammar(form: Any) -> str | None:
    """A grammar in words; both ways of nesting are about."""
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return None
    inner = form.get("grammar")
    said = inner if isinstance(inner, dict) else form
    syntax, definition = said.get("syntax") or "", said.get("definition") or ""
    return f"The input must match this {syntax} grammar:\n{definition}"


def _dropped(kind: str, at: str) -> Note:
    return Note("tool_dropped", at, f"nobody runs the hosted tool '{kind[:60]}' here")


def _refusal(kind: str) -> BadRequest:
    more = (
        " The gateway's own search answers it where the model has one among its `server_tools`."
        if kind.startswith(_SEARCH)
        else ""
    )
    return BadRequest(
        f"The hosted tool '{kind[:60]}' is run by OpenAI, and this gateway does not run it. Send a "
        f"tool of type 'function' and run it yourself, or leave it out.{more}",
        code="unsupported_tool",
        param="tools",
    )
