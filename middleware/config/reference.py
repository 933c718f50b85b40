"""The table of keys as a document: `python -m middleware.config.reference > docs/config.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from middleware.config.keys import (
    ABILITIES,
    COMING,
    KINDS,
    MODEL,
    OPTIONS,
    OWN_FIELDS,
    PIPELINE,
    RECALL,
    SERVER,
    TIMEOUTS,
    UPSTREAM,
    Key,
    Kind,
)
from middleware.config.pipelines import TAVILY

_HEAD = """\
# Every key of config.toml

Written by `python -m middleware.config.reference` from the table the gateway reads its config by: \
edit `middleware/config/keys.py`, not this file. [config.toml](../config.toml) has the same in the \
order one writes it, with examples.

A key that is not in these tables is a mistake, and so is a value that is not allowed; `usetool \
check` names all of them at once. Names with a dot or a star stand in quotes: `[models."gpt-*"]`. \
`"env:NAME"` takes a secret from the environment variable NAME; if that is not set, the models \
that need it are listed as not available, with the reason. The gateway's own keys have to be set, \
or it does not start.
"""
_FREE = "`defaults` and `override` hold any field of a request but {fields}."


def reference() -> str:
    """The whole document."""
    of_models = {name: key for name, key in MODEL.items() if not _is_grouped(name, key)}
    parts = [
        _HEAD,
        _section("[server]", "How the gateway listens.", SERVER),
        _section(
            "[defaults.timeouts]",
            "Seconds to wait for every upstream; `timeouts = { … }` of an upstream goes before.",
            TIMEOUTS,
        ),
        _section("[recall]", "What clients do not send back and upstreams need back.", RECALL),
        _section("[upstreams.NAME]", "A service behind the gateway.", UPSTREAM),
        _kinds(),
        _section(
            "[models.NAME]", "A name clients may ask for; `*` stands for any text.", of_models
        ),
        _fields(),
        _section(
            "[models.NAME]: what the model can do",
            "Only where the gateway is wrong about it; in the section itself or in `abilities`.",
            ABILITIES,
        ),
        _section(
            "[models.NAME]: options of its upstream's kind",
            "In the section itself or in `options`; of an upstream's `options` for all its models.",
            OPTIONS,
        ),
        _section(
            "[models.NAME]: pipelines",
            "A model with `pipeline` is made of two others, and has no `upstream` of its own.",
            PIPELINE,
        ),
    ]
    return "\n".join(parts + ([_coming()] if COMING else []))


def _is_grouped(name: str, key: Key) -> bool:
    """An ability may have the name of another key of a model: then both have their row."""
    return any(group.get(name) is key for group in (ABILITIES, OPTIONS, PIPELINE, COMING))


def _section(title: str, text: str, keys: Mapping[str, Key]) -> str:
    rows = [("key", "allowed", "default", "meaning"), ("---",) * 4, *map(_row, keys.items())]
    return f"## {title}\n\n{text}\n\n{_table(rows)}"


def _row(named: tuple[str, Key]) -> tuple[str, ...]:
    name, key = named
    meaning = key.text
    if key.coming:
        meaning += f" ({', '.join(key.coming)}: not in this version yet)"
    return f"`{name}`", key.allowed.words, _default(key.default), meaning


def _default(value: Any) -> str:
    if value is None:
        return ""
    shown = json.dumps(value, ensure_ascii=False) if not isinstance(value, dict) else "{}"
    return f"`{shown.removesuffix('.0')}`"


def _kinds() -> str:
    head = ("kind", "`base_url` if not given", "`auth`", "memory between turns")
    there = {name: kind for name, kind in KINDS.items() if _is_there(name)}
    rows = [head, ("---",) * 4, *map(_kind, there.items())]
    text = (
        "`kind` is the language an upstream speaks: a module of `adapters/`. `tavily` is no model: "
        "it searches for pipelines. `longtail` is LiteLLM, for providers without a kind of their "
        "own."
    )
    return f"### Kinds\n\n{text}\n\n{_table(rows)}"


def _is_there(kind: str) -> bool:
    return kind == TAVILY or find_spec(f"adapters.{kind}") is not None


def _kind(named: tuple[str, Kind]) -> tuple[str, ...]:
    name, kind = named
    address = kind.base_url or ("has to be given" if kind.needs_address else "none needed")
    return f"`{name}`", address, kind.auth, "kept" if kind.recall else "kept with `recall = true`"


def _fields() -> str:
    named = ", ".join(f"`{name}`" for name in sorted(OWN_FIELDS))
    return f"{_FREE.format(fields=named)}\n"


def _coming() -> str:
    rows = [("key", "meaning"), ("---",) * 2]
    rows += [(f"`{name}`", key.text) for name, key in COMING.items()]
    text = "A model with one of these loads, and is listed as not available."
    return f"## Not in this version yet\n\n{text}\n\n{_table(rows)}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    # Windows would write other line ends and another encoding.
    sys.stdout.buffer.write(reference().encode())
