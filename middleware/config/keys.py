"""The one table of what config.toml may say; parsing, mistakes and documentation follow it.

What is for one kind of upstream stands in the `KIND` of its package; `kind_keys.py` joins it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.options import (
    ANY_TEXT,
    FLAG,
    FOLDER,
    PATH,
    TABLE,
    TEXT,
    TEXTS,
    Allowed,
    choice,
    listed,
    plain,
    whole,
)
from middleware.config import values


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table; without a default it stays None unless it is given."""

    allowed: Allowed
    text: str
    default: Any = None


SERVER: Mapping[str, Key] = {
    "host": Key(
        TEXT, "Address to listen on; others than this machine's own need keys", "127.0.0.1"
    ),
    "port": Key(whole(1, 65535), "Port to listen on", 8000),
    "keys": Key(values.SECRETS, "Keys of which a client must send one; none = no key is asked", ()),
    "strict": Key(
        FLAG, "Refuse a request of which a field would be lost, instead of saying so", False
    ),
    "history_repair": Key(FLAG, "Mend a history with missing or orphan tool results", False),
    "heartbeat": Key(
        values.SECONDS, "Silence of a stream after which a comment keeps it open", 15.0
    ),
    "max_body": Key(whole(1), "Largest request body, in bytes", 8 << 20),
    "max_concurrent": Key(whole(1), "Requests at work at once; more are refused with 503", 1024),
    "cors_origins": Key(TEXTS, "Web origins whose pages may call; * = all", ()),
    "hosts": Key(
        values.HOSTS,
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
    "workers": Key(whole(1, 256), "Processes that serve the port together", 1),
    "doors": Key(values.DOORS, "Protocols it is called in", values.ALL_DOORS),
    "ollama_port": Key(whole(1, 65535), "A second port, for clients of an Ollama; theirs is 11434"),
    "ollama_version": Key(TEXT, "Which Ollama it says it is, where clients ask", "0.33.0"),
}
TIMEOUTS: Mapping[str, Key] = {
    "connect": Key(values.SECONDS, "Until the connection stands; 5"),
    "first_event": Key(
        values.SECONDS,
        "Until the first sign of an answer, and five times that while only pings come; 60, or what "
        "is usual for its kind",
    ),
    "idle": Key(
        values.SECONDS,
        "Silence in a stream; 60, while a thought or a call is open 300. In [defaults.timeouts] "
        "also how long an answer waits for a client that does not read it; 60",
    ),
    "content": Key(
        values.SECONDS, "Time without content in a stream that pings, from its beginning; 300"
    ),
    "plain": Key(
        values.SECONDS, "An answer that is not streamed, whole; first_event if set, else 600"
    ),
    "total": Key(values.SECONDS, "An answer with all its attempts, from end to end; 600"),
}
DEFAULTS: Mapping[str, Key] = {
    "timeouts": Key(TABLE, "Of every upstream that does not say otherwise", {})
}
UPSTREAM: Mapping[str, Key] = {
    "kind": Key(TEXT, "The language it speaks"),
    "base_url": Key(values.ADDRESS, "Where it is; some kinds have a usual address"),
    "api_key": Key(
        values.KEYS,
        "What opens it; of several each serves its share, and rests when it is limited or refused; "
        '"client" passes on the key each client sends',
        (),
    ),
    "auth": Key(choice("bearer", "x-api-key"), "How the key is sent, if not as usual for its kind"),
    "proxy": Key(values.PROXY, "An HTTP proxy on the way to it; the environment's are ignored"),
    "timeouts": Key(TABLE, "Seconds to wait for it", {}),
    "headers": Key(values.HEADERS, "Sent with every call", {}),
    "api_version": Key(TEXT, "The version of its API to ask for, if not the usual one"),
    "options": Key(TABLE, "Options for every model that does not set them itself", {}),
    "max_concurrent": Key(
        whole(1), "Calls at once on each of its keys, streams until their end; more wait"
    ),
    "queue": Key(values.DURATION_OR_NONE, "How long a request waits for a free slot there", 10.0),
}
STATE: Mapping[str, Key] = {
    "url": Key(
        values.STATE_URL,
        "Where limits, rests, budgets and open calls are counted: a file, a Redis for several "
        "gateways, or memory; if not given, a file of this config in `folder`",
    ),
    "folder": Key(
        FOLDER, "Where the gateway's own files are; the user's state directory if not given"
    ),
    "secret": Key(
        values.OWN_SECRET,
        "Signs what clients are given to carry, the same for all gateways of one Redis; one is "
        "kept in `folder` if not given",
    ),
}
LEDGER: Mapping[str, Key] = {
    "url": Key(
        values.LEDGER_URL,
        "Where usage is written, a row a request; if not given, a file of this config in the "
        "folder of [state]",
    ),
}
TELEMETRY: Mapping[str, Key] = {
    "otlp": Key(values.ADDRESS, "A collector of OpenTelemetry traces, which go to its /v1/traces"),
    "service_name": Key(TEXT, "The name under which traces are found", "usetool"),
    "log_bodies": Key(FLAG, "Requests and answers are in the log, without their keys", False),
}
CLIENT: Mapping[str, Key] = {
    "key": Key(values.SECRET, "What it sends to be let in"),
    "models": Key(TEXTS, "Names and patterns of the models it may ask; none = all", ()),
    "requests_per_minute": Key(whole(1), "Requests let in within any 60 seconds"),
    "tokens_per_minute": Key(whole(1), "Tokens within any 60 seconds, those at work included"),
    "concurrent": Key(whole(1), "Its requests at work at once"),
    "budget": Key(values.BUDGET, "What it may spend in a period of the calendar, UTC"),
    "admin": Key(FLAG, "May see everybody's usage, requests, metrics and cassettes", False),
    "cassettes": Key(TEXTS, "Names and patterns of cassettes it may name", ()),
}
RECALL: Mapping[str, Key] = {
    "store": Key(
        choice("state", "file", "memory", "off"),
        "Where what clients do not send back is kept: state means the Redis of [state] if that is "
        "one, memory if that is memory, else a file; state unless a path is given",
    ),
    "path": Key(
        PATH,
        "The file, NAME-rounds and NAME-answers beside it; in the user's state directory if not "
        "given",
    ),
    "max_bytes": Key(
        whole(1 << 16),
        "Its size: half for thoughts, half for rounds of tools; answers take as much as a half",
        256 << 20,
    ),
    "max_age": Key(values.SECONDS, "Seconds after which what was not needed goes", 7 * 86400.0),
}
TOOL_KINDS = choice("python", "http", "tavily", "mcp")
MODES = ("off", "replay", "record", "auto", "refresh")
CASSETTES: Mapping[str, Key] = {
    "mode": Key(
        choice(*MODES),
        "What becomes of requests that do not say it themselves: asked as usual, answered from "
        "recordings, recorded, both (what is new is recorded), or recorded where it changed",
        "off",
    ),
    "folder": Key(FOLDER, "Where the files are", "cassettes"),
    "allow": Key(
        listed(choice(*MODES), "a list of modes"),
        "Modes a request may choose by its header x-usetool-mode",
        ("replay",),
    ),
    "redact": Key(
        TEXTS, "Paths in asks and answers, or patterns, whose texts are never written", ()
    ),
    "repeats": Key(
        choice("miss", "last"),
        "An ask that comes more often than it was recorded: an error (miss), or the last answer",
    ),
}
PIPELINE: Mapping[str, Key] = {
    "pipeline": Key(
        choice("reason-then-answer"), "Two models in turn: one thinks, the other answers"
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
    "search": Key(TEXT, "The upstream that is searched before the reasoner thinks"),
    "search_when": Key(
        choice("tools", "always", "never"), "Search if the request has tools, always, or never"
    ),
    "search_show": Key(FLAG, "Findings are shown with the thought"),
}
CHOICES: Mapping[str, Key] = {
    "choices": Key(
        TEXTS,
        "The models it is made of; then it has no upstream of its own. A `*` stands for what "
        "stands in its name",
        (),
    ),
    "pick": Key(
        choice("order", "weight", "latency", "busy", "cost"),
        "Who is asked first: as written, by shares, who is quickest, who has the fewest open "
        "calls, who costs least",
        "order",
    ),
    "weights": Key(values.SHARES, "Shares, one a choice; 0 = only when no other is well", ()),
    "sticky": Key(FLAG, "A conversation stays with its choice while that is well", True),
}
STEPS = plain('true, false or "reasoning"', lambda value: value in (True, False, "reasoning"))
SERVER_TOOLS: Mapping[str, Key] = {
    "server_tools": Key(
        TEXTS, "Tools the gateway runs for it: tables, ids, patterns over ids (time.*)", ()
    ),
    "max_rounds": Key(whole(1, 100), "Rounds with server tools in one request", 8),
    "steps": Key(STEPS, "Whether clients see them: in x_usetool, or as thoughts", False),
    "takeover": Key(TEXTS, "Names of tools that, if clients declare them, are run here", ()),
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
    "retry": Key(
        whole(0, 5),
        "How often a call that failed before its first word is repeated; of several, 3 in all",
        2,
    ),
    "abilities": Key(TABLE, "What it can do, where the gateway is wrong about it", {}),
    "options": Key(TABLE, "Options of its upstream's kind and of tools by prompt", {}),
    "recall": Key(
        FLAG,
        "Keep what its upstream needs back and clients do not send; unset, as usual for its kind",
    ),
    "reasoning": Key(
        choice("reasoning_content", "reasoning", "think-tags", "hidden"),
        "How thoughts are shown: in a field of the message, in its text, or not; beside JSON not",
    ),
    "cassettes": Key(
        choice("live", *MODES), "Another mode of cassettes for it; live: never recorded or replayed"
    ),
    "fallback": Key(
        TEXTS, "Models asked in order when it fails before its first word; theirs do not count", ()
    ),
    "price": Key(values.PRICE, "USD a million tokens, where the gateway is wrong about it"),
    "context_length": Key(whole(1), "Tokens of its context, where the gateway is wrong about it"),
    **CHOICES,
    **PIPELINE,
    **SERVER_TOOLS,
}
# What a request consists of; `defaults` and `override` are for the fields around it.
OWN_FIELDS = frozenset({"model", "messages", "stream", "tools", "functions"})
SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "server": SERVER,
    "defaults": DEFAULTS,
    "defaults.timeouts": TIMEOUTS,
    "state": STATE,
    "recall": RECALL,
    "ledger": LEDGER,
    "telemetry": TELEMETRY,
    "clients.NAME": CLIENT,
    "cassettes": CASSETTES,
    "upstreams.NAME": UPSTREAM,
    "upstreams.NAME.timeouts": TIMEOUTS,
    "models.NAME": MODEL,
}
