"""What somebody who made a mistake in a config may have meant."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from adapters.kind import Service, all_kinds
from middleware.config.keys import OWN_FIELDS, SECTIONS
from middleware.config.kind_keys import ability_keys, option_keys

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# What the parser's words mean to somebody who does not know TOML.
_TOML_HINTS: Mapping[str, str] = {
    "Invalid value": 'Text stands in quotes: kind = "compatible".',
    "Expected ']'": 'A name with "/", "*" or a blank stands in quotes: [models."relay/*"].',
    "Cannot declare": "Each [section] stands once in the file, with all its keys.",
    "Cannot overwrite": "Each key stands once in its section.",
}
# Fields OpenAI does not have and many servers take.
_USUAL = frozenset(
    {"enable_thinking", "min_p", "min_tokens", "repetition_penalty", "thinking", "top_a", "top_k"}
)
# "temprature" is above it; "top_k" beside "top_p", "min_tokens" beside "max_tokens" are not.
_ALIKE = 0.87


def toml_hint(words: str) -> str:
    return next((f". {hint}" for start, hint in _TOML_HINTS.items() if words.startswith(start)), "")


def path_of(*names: str) -> str:
    """Write a key's path as TOML does, with quotes where it needs them."""
    return ".".join(name if _BARE.fullmatch(name) else f'"{name}"' for name in names)


def suggest(name: str, known: Collection[str], alike: float = 0.6) -> str:
    """The known name that was probably meant, as a question; else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1, cutoff=alike)
    return f" Did you mean '{close[0]}'?" if close else ""


def elsewhere(path: tuple[str, ...]) -> str:
    """The section or the kind that has a key of this name."""
    place, name = path[-2:] if len(path) > 1 else ("", path[0])
    if place in ("options", "abilities"):
        keys_in = option_keys if place == "options" else ability_keys
        kinds = [kind.name for kind in all_kinds() if name in keys_in(kind.name)]
        return f" It is for upstreams of kind {' or '.join(kinds)}." if kinds else ""
    places = [f"[{section}]" for section, keys in SECTIONS.items() if name in keys]
    places = places or _of_models(path[0], name)
    return f" It belongs in {' or '.join(places)}." if places else ""


def _of_models(section: str, name: str) -> list[str]:
    """Where an option or an ability stands; an upstream may have an option for all its models."""
    if name not in option_keys(""):
        return ["[models.NAME]"] if name in ability_keys("") else []
    here = [f"options = {{ {name} = … }} here"] if section == "upstreams" else []
    return ["[models.NAME]", *here]


@cache
def _known() -> frozenset[str]:
    from middleware.doors import FIELDS  # late: it loads pydantic

    return FIELDS | _USUAL


def misspelt(name: str) -> str:
    """The field that is meant, as a question; a name that resembles none may be anybody's own."""
    plain = name.lower().replace("-", "_")
    return "" if name in _known() else suggest(plain, _known() - OWN_FIELDS, _ALIKE)


def as_field(path: tuple[str, ...], value: Any) -> str:
    """What is written beside a model's keys and belongs into its requests."""
    name = path[-1]
    if path[0] != "models" or len(path) != 3 or name not in _known() - OWN_FIELDS:
        return ""
    dumped = json.dumps(value, default=str, ensure_ascii=False)
    said = f"{name} = {'{ … }' if isinstance(value, dict) else dumped}"
    return f" Write it as a field of requests: defaults = {{ {said} }}, or override = {{ {said} }}."


def meant(name: str) -> Service | None:
    """The service that somebody means who writes its name for a kind."""
    plain = _plain(name)
    for kind in all_kinds():
        for known, service in kind.services.items():
            if plain == _plain(known) or plain in service.aliases:
                return service
    return None


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def stanza(upstream: str, service: Service) -> str:
    """What to write for it, line by line."""
    lines = [f"[{path_of('upstreams', upstream)}]", f'kind = "{service.kind}"']
    lines += [f'base_url = "{service.base_url}"'] if service.base_url else []
    lines += [f'api_key = "env:{service.variable}"'] if service.variable else []
    return "".join([f"\n  {line}" for line in lines])
