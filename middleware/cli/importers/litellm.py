"""A config of LiteLLM's proxy → config.toml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adapters.options import Environment
from middleware.cli.importers import toml
from middleware.cli.importers.clients import clients_of
from middleware.cli.importers.collecting import (
    NO_COUNTERPART,
    Lost,
    Surroundings,
    Table,
    Taking,
    Unreadable,
    references,
    table_of,
    tables_of,
)
from middleware.cli.importers.deployment import WHY, Usual, usual_variable, waits
from middleware.cli.importers.fallbacks import take_fallbacks
from middleware.cli.importers.models import ModelTables
from middleware.cli.importers.state import state_of

_SECTIONS = ("litellm_settings", "router_settings", "general_settings")
_PICKS: Mapping[str, str] = {
    "simple-shuffle": "weight",
    "least-busy": "busy",
    "latency-based-routing": "latency",
    "cost-based-routing": "cost",
}
_SHUFFLED = "weight"
# A reason for a section of LiteLLM's settings, beside those of deployments.
_SETTINGS: Mapping[str, str] = {
    **WHY,
    "database_url": "is not read: usage goes to [ledger], and clients stand in [clients]",
    "enable_pre_call_checks": "not needed: who cannot take a request is passed over",
    "optional_pre_call_checks": "not needed: conversations stay where they are (sticky)",
    "callbacks": "what happens is told by /metrics and [telemetry]",
    "success_callback": "what happens is told by /metrics and [telemetry]",
    "failure_callback": "what happens is told by /metrics and [telemetry]",
    "store_model_in_db": "models stand in the file",
}
_WHY_NOT: Mapping[str, str] = {
    "environment_variables": "set these in the environment of the gateway",
    "include": "other files are not read: import them one by one",
}


class Imported(NamedTuple):
    text: str
    lost: tuple[Lost, ...]
    models: tuple[str, ...]


def from_litellm_file(path: str, environment: Environment) -> Imported:
    try:
        text = Path(path).read_text("utf-8-sig")
        return from_litellm(text, Path(path).name, environment)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not UTF-8 text") from error
    except Unreadable as error:
        raise Unreadable(f"{path} {error}") from error


def from_litellm(text: str, source: str, environment: Environment) -> Imported:
    found = _read(text)
    around = Surroundings(environment, _taken(found))
    settings = {
        name: Taking("", f"{name}.", table_of(found.pop(name, None)), around) for name in _SECTIONS
    }
    router, library, general = (settings[name] for name in ("router_settings", *_SECTIONS[::2]))
    tables = ModelTables(around, _usual(router, library), _pick(router))
    entries, credentials = found.pop("model_list", None), found.pop("credential_list", None)
    for place, entry in tables_of(entries):
        tables.add(place, entry, _credentials(credentials))
    tables.settle()
    tables.name_again(table_of(router.take("model_group_alias")))
    take_fallbacks(tables, library, router)
    timeout = _timeout(router, library)
    sections = clients_of(general, library)
    if state := state_of(router, general, library):
        sections.append(toml.table(("state",), state))
    header = _header(source, _server(general), timeout, sections)
    for taking in settings.values():
        taking.lose_rest(_SETTINGS)
        tables.lost += taking.lost
    tables.lost += [Lost("", str(n), _WHY_NOT.get(str(n), NO_COUNTERPART)) for n in found]
    if not tables.models:
        raise Unreadable(_none_carried(tables.lost))
    parts = (header, *tables.sections())
    return Imported("\n\n".join(parts) + "\n", tuple(tables.lost), tuple(tables.models))


def _usual(router: Taking, library: Taking) -> Usual:
    found = [section.number("num_retries", 0, 5) for section in (router, library)]
    retries = next((int(number) for number in found if number is not None), None)
    at_once = router.number("default_max_parallel_requests", 1, 1e6)
    return Usual(retries, None if at_once is None else int(at_once))


def _timeout(router: Taking, library: Taking) -> float | None:
    its, usual = router.number("timeout", 0.001, 1e8), library.number("request_timeout", 0.001, 1e8)
    if its and usual and its != usual:
        library.lose("request_timeout", "router_settings.timeout goes before it")
    return its or usual


def _pick(router: Taking) -> str:
    strategy = router.text("routing_strategy")
    if strategy is not None and strategy not in _PICKS:
        why = f"{strategy} has no counterpart here: simple-shuffle is written"
        router.lose("routing_strategy", why)
    return _PICKS.get(strategy or "", _SHUFFLED)


def _server(general: Taking) -> Table:
    at_once = general.number("global_max_parallel_requests", 1, 1e6)
    return {} if at_once is None else {"max_concurrent": int(at_once)}


def _read(text: str) -> Table:
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Unreadable(f"is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not isinstance(found.get("model_list"), list):
        raise Unreadable("has no list 'model_list': it is no config of LiteLLM's proxy")
    return found


def _taken(found: Table) -> frozenset[str]:
    """The variables that hold keys: a key that is written out is not one of these."""
    unsaid = (
        usual_variable(table_of(entry.get("litellm_params")))
        for _, entry in tables_of(found["model_list"])
    )
    return frozenset((*references(found), *unsaid))


def _none_carried(lost: list[Lost]) -> str:
    first = next((one for one in lost if one.key == "model_list"), None)
    why = f": {first.of}: {first.why}" if first else ""
    return f"has no model that could be carried{why}"


def _credentials(value: Any) -> Mapping[str, Table]:
    return {
        str(entry.get("credential_name")): table_of(entry.get("credential_values"))
        for _, entry in tables_of(value)
    }


def _header(source: str, server: Table, timeout: float | None, sections: list[str]) -> str:
    notes = (
        f"Imported from LiteLLM's {source}. `usetool check` says what this file means and what is "
        "missing;",
        "README.md and docs/config.md say what else it may say.",
    )
    listens = toml.table(
        ("server",),
        {"host": "127.0.0.1", "port": 8000, **server},
        ("Of this machine only; 0.0.0.0 for all. LiteLLM's usual port is 4000.",),
    )
    parts = ["\n".join(f"# {toml.comment(note)}" for note in notes), listens, *sections]
    if timeout:
        parts.append(toml.table(("defaults", "timeouts"), waits(timeout)))
    return "\n\n".join(parts)
