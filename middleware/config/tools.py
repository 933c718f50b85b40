"""`[tools.NAME]`: keys, and what a table must say to be meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from adapters.options import (
    ANY_TEXT,
    FLAG,
    PATH,
    TABLE,
    TEXT,
    TEXTS,
    Allowed,
    Environment,
    Wrong,
    choice,
    plain,
    table_of,
    whole,
)
from middleware.config.hints import suggest
from middleware.config.keys import TOOL_KINDS, Key
from middleware.config.shape import Config, ModelConfig, Secret, ToolConfig
from middleware.config.values import ADDRESS, HEADERS, SECONDS, SECRET

Path = tuple[str, ...]
Values = dict[str, Any]
ReadTable = Callable[[Any, Mapping[str, Key], Path], Values]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")


def _functions(value: Any, _: Environment) -> tuple[str, ...]:
    if value == "*":
        return ("*",)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise Wrong
    return tuple(value)


def _command(value: Any, _: Environment) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise Wrong("each word stands by itself in the list")
    return tuple(value)


SCHEMA = plain(
    'a JSON Schema: a table with type = "object"',
    lambda value: isinstance(value, dict) and value.get("type") == "object",
)
_ONE: Mapping[str, Key] = {
    "name": Key(TEXT, "What the model calls it by, instead of its own name"),
    "description": Key(ANY_TEXT, "What the model is told of it, instead of its own words"),
    "parameters": Key(SCHEMA, "What the model may give it, instead of what is derived"),
}
TOOL: Mapping[str, Key] = {
    "kind": Key(TOOL_KINDS, "What runs it"),
    "enabled": Key(FLAG, "False: not offered, and not run", True),
    "timeout": Key(SECONDS, "Seconds a call may take, as a whole", 30.0),
    "max_result": Key(whole(100), "Characters of a result; more is cut", 50_000),
    "calls_per_request": Key(whole(1), "Calls of each of its tools in one request", 20),
    "calls_per_minute": Key(whole(1), "Calls of each of its tools by one client in 60 seconds"),
    "clients": Key(TEXTS, "Only these clients get it; none = all", ()),
    "defaults": Key(TABLE, "Arguments for calls that do not give them", {}),
    "strict": Key(FLAG, "Upstreams hold the model to the schema, where they can", False),
}
_OVERRIDE: Mapping[str, Key] = {**_ONE, "timeout": TOOL["timeout"]}
_OVERRIDES: Mapping[str, Key] = {
    "overrides": Key(
        table_of(TABLE, "a table of tables"),
        "By function or tool: another name, description, parameters, timeout",
        {},
    )
}
OF_KIND: Mapping[str, Mapping[str, Key]] = {
    "python": {
        "module": Key(TEXT, "A file or folder beside the config, or an importable module"),
        "functions": Key(
            Allowed('"*", or a list of names', _functions),
            "Which of it; * = those marked with @tool if there are any, else all public ones",
            ("*",),
        ),
        "options": Key(TABLE, "For classes among the functions, when they are made", {}),
        **_ONE,
        **_OVERRIDES,
    },
    "http": {
        "method": Key(
            choice("GET", "HEAD", "DELETE", "POST", "PUT", "PATCH"), "How it is asked", "GET"
        ),
        "url": Key(TEXT, "Where; {name} stands for an argument"),
        "headers": Key(HEADERS, "Sent to the origin of `url`, nowhere else", {}),
        "body": Key(
            choice("query", "json", "form"),
            "Where arguments go that are not in the path; query for GET, HEAD, DELETE, else json",
        ),
        "max_bytes": Key(whole(1), "How much of an answer is read", 1 << 20),
        "allow": Key(
            TEXTS, '"host:port", as in the address: may be asked though it is not public', ()
        ),
        **_ONE,
    },
    "tavily": {
        "api_key": Key(SECRET, 'Its key; "env:TAVILY_API_KEY" if not given'),
        "base_url": Key(ADDRESS, "Where it is, if not where it usually is"),
        "upstream": Key(TEXT, "The [upstreams] entry of kind tavily that has key and address"),
        **_ONE,
    },
    "mcp": {
        "command": Key(Allowed("a list of texts", _command), "Starts a server over stdio"),
        "env": Key(
            table_of(SECRET, 'a table of texts, or of "env:NAME"'),
            "What its environment has beside PATH, HOME, LANG, TMPDIR and USER",
            {},
        ),
        "cwd": Key(PATH, "The folder it runs in; that of the config if not given"),
        "url": Key(
            plain(
                "an http:// or https:// address",
                lambda value: (
                    isinstance(value, str)
                    and re.fullmatch(r"https?://[^\s/?#]+[^\s]*", value) is not None
                ),
            ),
            "A server over streamable HTTP",
        ),
        "headers": Key(HEADERS, "Sent with every request to it", {}),
        **_OVERRIDES,
    },
}


def tools_of(
    entries: Values, table: ReadTable, wrong: Callable[[Path, str], None], environment: Environment
) -> Mapping[str, ToolConfig]:
    """Read the tables; `table` and `wrong` are the reading's."""
    tools = {name: _tool_of(name, entry, table, wrong) for name, entry in entries.items()}
    key = SECRET.read("env:TAVILY_API_KEY", environment)
    return {
        name: replace(tool, api_key=key)
        if tool.kind == "tavily" and not (tool.api_key or tool.upstream)
        else tool
        for name, tool in tools.items()
    }


def _tool_of(
    name: str, found: Any, table: ReadTable, wrong: Callable[[Path, str], None]
) -> ToolConfig:
    path: Path = ("tools", name)
    if not _NAME.fullmatch(name):
        wrong(path, "must be up to 32 of A-Z, a-z, 0-9, _ and -, as ids are made of it.")
    written = found if isinstance(found, dict) else {}
    own = _own_keys(written.get("kind"))
    if not own and isinstance(found, dict):  # that is the mistake, not what only it would know
        if "kind" not in written:
            wrong((*path, "kind"), f"is missing: write one of {', '.join(OF_KIND)}.")
        found = _given(written, TOOL)
    values = table(found, {**TOOL, **own}, path)
    overrides = {
        of: _given(table(one, _OVERRIDE, (*path, "overrides", of)), one)
        for of, one in (values.get("overrides") or {}).items()
    }
    given = {**values, "kind": values["kind"] or "", "overrides": overrides}
    tool = ToolConfig(id=name, **given)
    for key, text in _mistakes_of(tool):
        wrong((*path, key), text)
    return tool


def _own_keys(kind: object) -> Mapping[str, Key]:
    return OF_KIND.get(kind, {}) if isinstance(kind, str) else {}


def _given(values: Values, written: Mapping[str, Any]) -> Values:
    return {name: value for name, value in values.items() if name in written}


def _mistakes_of(tool: ToolConfig) -> Iterator[tuple[str, str]]:
    if tool.kind == "python":
        yield from _of_python(tool)
        yield from _of_overrides(tool)
    elif tool.kind == "http":
        yield from _of_http(tool)
    elif tool.kind == "mcp" and (tool.command is None) == (tool.url is None):
        yield "command", "or url must be given, and not both: which of them starts or reaches it."


def _of_python(tool: ToolConfig) -> Iterator[tuple[str, str]]:
    if tool.module is None:
        yield "module", 'is missing: write module = "tools.py", or the name of a module.'
    said = [key for key in _ONE if getattr(tool, key) is not None]
    if "*" in tool.functions:
        for key in (*said, *(["overrides"] if tool.overrides else [])):
            yield key, 'is not for functions = "*": name the functions.'
    elif len(tool.functions) > 1:
        for key in said:
            yield key, "is for a table of one function: write it in overrides, by function."


def _of_overrides(tool: ToolConfig) -> Iterator[tuple[str, str]]:
    known = {one.rpartition(":")[2] for one in tool.functions}
    if _is_open(tool.functions):  # what it has is not known
        return
    for name in tool.overrides.keys() - known:
        hint = suggest(name, known)
        yield "overrides", f"has '{name}', which is none of the functions.{hint}"


def _of_http(tool: ToolConfig) -> Iterator[tuple[str, str]]:
    if tool.url is None:
        yield "url", 'is missing: write url = "https://…".'
        return
    known = (tool.parameters or {}).get("properties") or {}
    for name in PLACEHOLDER.findall(tool.url):
        if name not in known:
            told = f"has {{{name}}}, but there is no '{name}' among the properties of parameters."
            yield "url", told
    if PLACEHOLDER.fullmatch(tool.url):
        return
    scheme, _, rest = tool.url.partition("://")
    if PLACEHOLDER.search(scheme) or PLACEHOLDER.search(re.split(r"[/?#]", rest)[0]):
        yield "url", "has a {placeholder} in its scheme or host: only behind these, or as a whole."
    elif scheme not in ("http", "https") or not rest:
        yield "url", "must begin with http:// or https://."


def mistakes_of_tools(config: Config) -> Iterator[tuple[Path, str]]:
    """What tools, models, clients and upstreams say of each other and cannot mean."""
    for tool in config.tools.values():
        for key, text in _of_others(tool, config):
            yield ("tools", tool.id, key), text
    for model in config.models.values():
        for key, text in _of_model(model, config.tools):
            yield ("models", model.id, key), text


def _of_others(tool: ToolConfig, config: Config) -> Iterator[tuple[str, str]]:
    for name in tool.clients:
        if name != "default" and name not in config.clients:
            hint = suggest(name, ("default", *config.clients))
            yield "clients", f"has '{name}', but there is no [clients.{name}].{hint}"
    upstream = config.upstreams.get(tool.upstream or "")
    if tool.upstream and (upstream is None or upstream.kind != "tavily"):
        yield "upstream", f"is '{tool.upstream}', which is no upstream of kind tavily."
    if tool.command and config.server.workers > 1:
        told = "starts a server, but [server] workers is more than 1, and each would start one."
        yield "command", told


def _of_model(model: ModelConfig, tools: Mapping[str, ToolConfig]) -> Iterator[tuple[str, str]]:
    for pattern in model.server_tools:
        if not any(_may_be(pattern, tool) for tool in tools.values()):
            hint = suggest(pattern, tools)
            yield "server_tools", f"has '{pattern}', but there is no such tool or table.{hint}"
    for name in model.takeover:
        if not any(_may_have(name, tool) for tool in tools.values()):
            yield "takeover", f"has '{name}', but no table of [tools] has a tool of this name."


def matches(pattern: str, table: str, identity: str) -> bool:
    """Whether an entry of `server_tools` means a tool: by table, id, or a pattern over ids."""
    return pattern in (table, identity) or fnmatchcase(identity, pattern)


def _may_be(pattern: str, tool: ToolConfig) -> bool:
    if matches(pattern, tool.id, tool.id):
        return True
    if tool.kind == "mcp" or _is_open(tool.functions):
        return fnmatchcase(tool.id, pattern.partition(".")[0])
    ids = [f"{tool.id}.{name.rpartition(':')[2]}" for name in tool.functions]
    return any(fnmatchcase(one, pattern) for one in ids)


def _may_have(name: str, tool: ToolConfig) -> bool:
    """Whether a table may have a tool of this name; what some have is not known yet."""
    renamed = {one["name"] for one in tool.overrides.values() if "name" in one}
    if tool.kind == "mcp" or _is_open(tool.functions) or name in renamed:
        return True
    usual = {"tavily": "tavily_search", "http": tool.id}.get(tool.kind)
    own: Collection[str] = [one.rpartition(":")[2] for one in tool.functions]
    return name == (tool.name or usual) or (tool.name is None and name in own)


def _is_open(functions: Collection[str]) -> bool:
    """All of a module, or the methods of a class."""
    return any(one.endswith("*") or one.rpartition(":")[2][:1].isupper() for one in functions)


def secrets_of(tool: ToolConfig) -> tuple[Secret, ...]:
    given = (tool.api_key, *tool.headers.values(), *tool.env.values())
    return tuple(secret for secret in given if secret is not None)
