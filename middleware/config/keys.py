"""The one table of what config.toml may say; parsing, mistakes and documentation follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from middleware.config.shape import Auth
from middleware.config.values import (
    ADDRESS,
    ANY_TEXT,
    ANYTHING,
    DURATION,
    FLAG,
    HEADERS,
    HOSTS,
    KEY,
    PATH,
    PROXY,
    SECONDS,
    SECRETS,
    TABLE,
    TEXT,
    TEXTS,
    THINKING,
    Allowed,
    choice,
    plain,
    whole,
)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table; without a default it stays None unless it is given."""

    allowed: Allowed
    text: str
    default: Any = None
    coming: tuple[str, ...] = ()
    """Values this version knows but cannot serve yet; `ANY_VALUE` for all of them."""


ANY_VALUE = ("*",)


def _coming(text: str) -> Key:
    return Key(ANYTHING, text, coming=ANY_VALUE)


SERVER: Mapping[str, Key] = {
    "host": Key(
        TEXT, "Address to listen on; others than this machine's own need keys", "127.0.0.1"
    ),
    "port": Key(whole(1, 65535), "Port to listen on", 8000),
    "keys": Key(SECRETS, "Keys of which a client must send one; none = no key is asked", ()),
    "strict": Key(
        FLAG, "Refuse a request of which a field would be lost, instead of saying so", False
    ),
    "history_repair": Key(FLAG, "Mend a history with missing or orphan tool results", False),
    "heartbeat": Key(SECONDS, "Silence of a stream after which a comment keeps it open", 15.0),
    "max_body": Key(whole(1), "Largest request body, in bytes", 8 << 20),
    "max_concurrent": Key(whole(1), "Requests at work at once; more are refused with 503", 1024),
    "cors_origins": Key(TEXTS, "Web origins whose pages may call; * = all", ()),
    "hosts": Key(
        HOSTS,
        "Names under which the gateway may be asked beside this machine's own, where no key is "
        "asked; * = all",
        (),
    ),
    "keep_last": Key(
        whole(0, 1000),
        "How many of the last requests are kept in memory to look at; 50 if host is this machine's "
        "own address, else 0",
    ),
    "log_level": Key(
        choice("debug", "info", "warning", "error"), "How much is written to the log", "info"
    ),
}
TIMEOUTS: Mapping[str, Key] = {
    "connect": Key(SECONDS, "Until the connection stands; 5"),
    "first_event": Key(
        SECONDS,
        "Until the first sign of an answer, and five times that while only pings come; 60 (600: "
        "deepseek, local, ollama)",
    ),
    "idle": Key(
        SECONDS,
        "Silence in a stream; 60, while a thought or a call is open 300. In [defaults.timeouts] "
        "also how long an answer waits for a client that does not read it; 60",
    ),
    "content": Key(SECONDS, "Time without content in a stream that pings, from its beginning; 300"),
    "plain": Key(SECONDS, "An answer that is not streamed, whole; first_event if set, else 600"),
    "total": Key(SECONDS, "One attempt, from end to end; 600"),
}
DEFAULTS: Mapping[str, Key] = {
    "timeouts": Key(TABLE, "Of every upstream that does not say otherwise", {})
}
UPSTREAM: Mapping[str, Key] = {
    "kind": Key(TEXT, "The language it speaks: a module of adapters/"),
    "base_url": Key(ADDRESS, "Where it is; claude, deepseek and ollama have a usual address"),
    "api_key": Key(KEY, 'What opens it; "client" passes on the key each client sends'),
    "auth": Key(
        choice("bearer", "x-api-key"), "How the key is sent; claude x-api-key, else bearer"
    ),
    "proxy": Key(PROXY, "An HTTP proxy on the way to it; the environment's are ignored"),
    "timeouts": Key(TABLE, "Seconds to wait for it", {}),
    "headers": Key(HEADERS, "Sent with every call", {}),
    "api_version": Key(TEXT, "The version of its API to ask for; claude 2023-06-01"),
    "options": Key(TABLE, "Further options of its kind, for all its models", {}),
}
ABILITIES: Mapping[str, Key] = {
    "vision": Key(FLAG, "It reads images"),
    "thinking": Key(THINKING, "Whether and how it thinks"),
    "sampling": Key(FLAG, "It takes temperature and top_p"),
    "forced_tool": Key(FLAG, "It obeys a tool_choice that forces a call"),
    "between_tools": Key(FLAG, "It thinks between tool calls"),
    "prefill": Key(FLAG, "It continues a last assistant message"),
    "mid_system": Key(FLAG, "It takes system messages in the middle of a conversation"),
    "json_schema": Key(FLAG, "It can be held to a JSON schema"),
}
OPTIONS: Mapping[str, Key] = {
    "max_tokens": Key(whole(1), "Longest answer if the client does not say"),
    "num_ctx": Key(
        whole(1),
        "Context window to ask for; unset, room for the conversation and, once that is "
        "outgrown, the whole of the model (ollama); 4096 (local)",
    ),
    "min_num_ctx": Key(whole(1), "Least context window, if the request decides it (ollama)"),
    "keep_alive": Key(DURATION, "How long it stays loaded (ollama)"),
    "reask": Key(whole(0, 1), "How often a faulty call is asked for again (emulated tools)"),
    "constraint": Key(
        choice("response_format", "structured_outputs", "json_schema", "lark", "off"),
        "How its server is held to the form of a demanded call (emulated tools)",
    ),
    "hold": Key(
        whole(0), "Characters that may turn out to be an unmarked thought (emulated tools)"
    ),
    "result_length": Key(whole(1), "Longest tool result in characters (emulated tools)"),
    "path": Key(PATH, "A GGUF file; else what was pulled last, else the small model (local)"),
    "threads": Key(whole(1), "Threads it computes with; one less than there are cores (local)"),
    "rules": Key(ANYTHING, "What it answers to what (scripted)"),
}
RECALL: Mapping[str, Key] = {
    "store": Key(
        choice("file", "memory", "off"),
        "Where what clients do not send back is kept; a file survives a restart",
        "file",
    ),
    "path": Key(PATH, "The file; in the user's state directory if not given"),
    "max_bytes": Key(whole(1 << 16), "Its size, from which on the oldest goes", 256 << 20),
    "max_age": Key(SECONDS, "Seconds after which what was not needed goes", 7 * 86400.0),
}
PIPELINE: Mapping[str, Key] = {
    "pipeline": Key(
        choice("reason-then-answer"),
        "Two models in turn: one thinks, the other answers",
    ),
    "reasoner": Key(TEXT, "The model that thinks in a pipeline"),
    "answerer": Key(TEXT, "The model that answers in a pipeline"),
    "rethink": Key(
        choice("once", "on-results", "always"),
        "When a pipeline thinks: once a question, on results of tools too, on every request",
    ),
    "reasoner_failure": Key(
        choice("answer", "error"), "What a failing reasoner becomes: an answer without it, an error"
    ),
    "reasoner_fields": Key(TABLE, "Fields of the reasoner's requests; the client's are not its"),
    "instructions": Key(ANY_TEXT, "What the reasoner is told"),
    "template": Key(
        plain(
            "text with {thought} in it",
            lambda value: isinstance(value, str) and "{thought}" in value,
        ),
        "How the answerer gets the thought",
    ),
    "separator": Key(ANY_TEXT, "Shown between thought and answer"),
    "search": Key(TEXT, "The upstream of kind tavily that is searched before the reasoner thinks"),
    "search_when": Key(
        choice("tools", "always", "never"), "Search if the request has tools, always, or never"
    ),
    "search_show": Key(FLAG, "Findings are shown with the thought"),
}
COMING: Mapping[str, Key] = {
    "server_tools": _coming("Tools the gateway runs itself"),
    "fallback": _coming("Models asked when this one fails"),
    "fallbacks": _coming("Models asked when this one fails"),
    "choices": _coming("Models of which the first that answers is taken"),
}
MODEL: Mapping[str, Key] = {
    "upstream": Key(TEXT, "The upstream that serves it"),
    "name": Key(TEXT, "The upstream's name for it; the public name if not given"),
    "tools": Key(
        choice("auto", "native", "emulated"),
        "Tool calls by the upstream's API, or by prompt",
        "auto",
    ),
    "defaults": Key(TABLE, "Fields for requests that do not have them", {}),
    "override": Key(TABLE, "Fields for every request, whatever the client sent", {}),
    "drop": Key(TEXTS, "Fields that are not passed on", ()),
    "retry": Key(whole(0, 5), "How often a call that failed before its first word is repeated", 2),
    "abilities": Key(TABLE, "What it can do, where the gateway is wrong about it", {}),
    "options": Key(TABLE, "Further options of its upstream's kind", {}),
    "recall": Key(
        FLAG,
        "Keep what its upstream needs back and clients do not send; compatible: not unless set",
    ),
    "reasoning": Key(
        choice("reasoning_content", "reasoning", "think-tags", "hidden"),
        "How thoughts are shown: in a field of the message, in its text, or not; beside JSON not",
    ),
    **ABILITIES,
    **OPTIONS,
    **PIPELINE,
    **COMING,
}
# What a request consists of; `defaults` and `override` are for the fields around it.
OWN_FIELDS = frozenset({"model", "messages", "stream", "tools", "functions"})
SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "server": SERVER,
    "defaults": DEFAULTS,
    "defaults.timeouts": TIMEOUTS,
    "recall": RECALL,
    "upstreams.NAME": UPSTREAM,
    "upstreams.NAME.timeouts": TIMEOUTS,
    "models.NAME": MODEL,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What is usual for upstreams of a kind; a kind without a row has the defaults below."""

    base_url: str = ""
    needs_address: bool = True
    auth: Auth = "bearer"
    api_version: str | None = None
    timeouts: Mapping[str, float] = field(default_factory=dict)
    recall: bool = True
    """It thinks in ways that must come back; else a layer around every event is not worth it."""
    added: tuple[str, ...] = ()
    """What the leaf adds to the address, longest first: its doubling is a common mistake."""


# Ollama and DeepSeek load or queue in silence for minutes, and are healthy.
KINDS: Mapping[str, Kind] = {
    "claude": Kind(
        "https://api.anthropic.com",
        auth="x-api-key",
        api_version="2023-06-01",
        added=("/v1/messages", "/v1"),
    ),
    "deepseek": Kind(
        "https://api.deepseek.com", timeouts={"first_event": 600}, added=("/chat/completions",)
    ),
    "ollama": Kind(
        "http://127.0.0.1:11434",
        timeouts={"first_event": 600, "idle": 300},
        added=("/api/chat", "/v1/chat/completions", "/api", "/v1"),
    ),
    "compatible": Kind(
        recall=False, added=("/chat/completions", "/completions", "/responses", "/models")
    ),
    "tavily": Kind("https://api.tavily.com", added=("/search",)),
    "longtail": Kind(needs_address=False),
    "scripted": Kind(needs_address=False, recall=False),
    "local": Kind(needs_address=False, recall=False, timeouts={"first_event": 600}),
}
