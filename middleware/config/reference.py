"""The table of keys as a document: `python -m middleware.config.reference > docs/config.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from adapters.kind import CommonAbilities, Kind, all_kinds
from middleware.config import keys, kind_keys
from middleware.config.tools import OF_KIND, TOOL
from middleware.wrappers.emulation import Emulation

_HEAD = """\
# Every key of config.toml

Written by `python -m middleware.config.reference` from the table the gateway reads its config by: \
edit `middleware/config/keys.py` or the `KIND` of a package in `adapters/`, not this file. \
[config.toml](../config.toml) has the same in the \
order one writes it, with examples.

A key that is not in these tables is a mistake, and so is a value that is not allowed; `usetool \
check` names all of them at once. Names with a dot or a star stand in quotes: `[models."gpt-*"]`. \
`"env:NAME"` takes a secret from the environment variable NAME; if that is not set, the models \
that need it are listed as not available, with the reason. The gateway's own keys have to be set, \
or it does not start.
"""


def reference() -> str:
    parts = [
        _HEAD,
        _section("[server]", "How the gateway listens.", keys.SERVER),
        _section(
            "[defaults.timeouts]",
            "Seconds to wait for every upstream; `timeouts = { … }` of an upstream goes before.",
            keys.TIMEOUTS,
        ),
        _section("[state]", "What is counted and remembered for everybody.", keys.STATE),
        _section("[recall]", "What clients do not send back and upstreams need back.", keys.RECALL),
        _section("[ledger]", "What was used, a row a request.", keys.LEDGER),
        _section("[telemetry]", "What is told of requests beside /metrics.", keys.TELEMETRY),
        _section(
            "[clients.NAME]",
            "Who may call, and how much; `[server] keys` are the client `default`, without limits.",
            keys.CLIENT,
        ),
        _section(
            "[cassettes]",
            "Requests that are recorded, or answered from recordings; without the section none can "
            "be ([cassettes.md](cassettes.md)).",
            keys.CASSETTES,
        ),
        _section("[upstreams.NAME]", "A service behind the gateway.", keys.UPSTREAM),
        _kinds(),
        *_models(),
        *_tools(),
    ]
    return "\n".join(parts)


def _models() -> list[str]:
    # The others have sections of their own.
    apart = {*keys.CHOICES, *keys.PIPELINE, *keys.SERVER_TOOLS}
    of_models = {name: key for name, key in keys.MODEL.items() if name not in apart}
    return [
        _section(
            "[models.NAME]", "A name clients may ask for; `*` stands for any text.", of_models
        ),
        f"`defaults` and `override` hold any field of a request but {_own_fields()}.\n",
        *_own_keys(),
        _section(
            "[models.NAME]: choices",
            "A model with `choices` is made of others, and has no `upstream` of its own.",
            keys.CHOICES,
        ),
        _section(
            "[models.NAME]: pipelines",
            "A model with `pipeline` is made of two others, and has no `upstream` of its own.",
            keys.PIPELINE,
        ),
        _section(
            "[models.NAME]: server tools",
            "What the gateway runs itself for a model; of the name that is asked for alone "
            "([tools.md](tools.md)).",
            keys.SERVER_TOOLS,
        ),
    ]


def _section(title: str, text: str, described: Mapping[str, keys.Key]) -> str:
    rows = [("key", "allowed", "default", "meaning"), ("---",) * 4, *map(_row, described.items())]
    return f"## {title}\n\n{text}\n\n{_table(rows)}"


def _row(named: tuple[str, keys.Key]) -> tuple[str, ...]:
    name, key = named
    return f"`{name}`", key.allowed.words, _default(key.default), key.text


def _default(value: Any) -> str:
    if value is None:
        return ""
    shown = json.dumps(value, ensure_ascii=False) if not isinstance(value, dict) else "{}"
    return f"`{shown.removesuffix('.0')}`"


def _kinds() -> str:
    head = ("kind", "what it is", "`base_url` if not given", "`auth`", "memory between turns")
    rows = [head, ("---",) * 5, *map(_kind, all_kinds())]
    text = (
        "`kind` is the language an upstream speaks: a package of `adapters/`, or of another "
        "distribution (see [adapters.md](adapters.md))."
    )
    return f"### Kinds\n\n{text}\n\n{_table(rows)}"


def _kind(kind: Kind) -> tuple[str, ...]:
    address = kind.base_url or ("has to be given" if kind.needs_address else "none needed")
    memory = "kept" if kind.remembers else "kept with `recall = true`"
    about = kind.about + "".join(f" `api_version` {kind.api_version}." if kind.api_version else "")
    return f"`{kind.name}`", about, address, kind.auth, memory


def _own_keys() -> list[str]:
    """What models have by their upstream's kind."""
    text = (
        "In `options` or in the section itself; in `options` of an upstream for all its models, "
        "which outrank it. Abilities, only where the gateway is wrong about a model, stand in "
        "`abilities` or in the section itself."
    )
    every = [*_described(options=Emulation), *_described(abilities=CommonAbilities)]
    parts = [
        f"## [models.NAME]: options and abilities\n\n{text}\n",
        f"### Of every kind\n\nThe options are of tools by prompt.\n\n{_rows(every)}",
    ]
    for kind in all_kinds():
        own = [*_described(options=kind.options), *_described(abilities=kind.abilities)]
        new = [row for row in own if row not in every]
        parts += [f"### Of kind `{kind.name}`\n\n{_rows(new)}"] if new else []
    return parts


def _described(**described: type[Any]) -> Iterator[tuple[str, ...]]:
    for where, one in described.items():
        for name, key in kind_keys.keys_of(one).items():
            default = next(field.default for field in fields(one) if field.name == name)
            shown = _default(default) if where == "options" else ""
            yield f"`{name}`", f"`{where}`", key.allowed.words, shown, key.text


def _rows(rows: Sequence[tuple[str, ...]]) -> str:
    return _table([("key", "in", "allowed", "default", "meaning"), ("---",) * 5, *rows])


def _tools() -> Iterator[str]:
    text = (
        "A tool, or a set of them, that the gateway runs. A model sees it by the name of the "
        "function, by NAME for `http`, as `tavily_search`, or as an MCP server calls it."
    )
    yield _section("[tools.NAME]", text, TOOL)
    for kind, own in OF_KIND.items():
        yield _section(f"[tools.NAME]: {kind}", f'With `kind = "{kind}"`.', own)


def _own_fields() -> str:
    return ", ".join(f"`{name}`" for name in sorted(keys.OWN_FIELDS))


def _table(rows: Sequence[Sequence[str]]) -> str:
    cells = [[text.replace("|", "\\|") for text in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


if __name__ == "__main__":
    # Windows would write other line ends and another encoding.
    sys.stdout.buffer.write(reference().encode())
