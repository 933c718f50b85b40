"""A config of LiteLLM's proxy → config.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from adapters.options import Environment
from middleware.cli.importers import toml
from middleware.cli.importers.collecting import (
    NO_COUNTERPART,
    Lost,
    Surroundings,
    Table,
    Taking,
    Unreadable,
    references,
    tables_of,
)
from middleware.cli.importers.deployment import (
    WHY,
    Carried,
    NotCarried,
    carry,
    usual_variable,
    waits,
)
from middleware.config import PublicNames

_FALLBACKS = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")
_NO_FALLBACK = "this version asks no other model when one fails"
_SECTIONS = ("litellm_settings", "router_settings", "general_settings")
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
        name: Taking("", f"{name}.", _table(found.pop(name, None)), around) for name in _SECTIONS
    }
    writing = _Writing(around, _retries(settings))
    entries, credentials = found.pop("model_list", None), found.pop("credential_list", None)
    for place, entry in tables_of(entries):
        writing.add(place, entry, _credentials(credentials))
    router, library, general = (settings[name] for name in ("router_settings", *_SECTIONS[::2]))
    writing.aliases(_table(router.take("model_group_alias")))
    for key in _FALLBACKS:
        writing.fallbacks(key, [*_pairs(library.take(key)), *_pairs(router.take(key))])
    timeout = router.number("timeout", 0.001, 1e8) or library.number("request_timeout", 0.001, 1e8)
    header = _header(source, general, timeout)
    for taking in settings.values():
        taking.lose_rest(WHY)
        writing.lost += taking.lost
    writing.lost += [Lost("", str(n), _WHY_NOT.get(str(n), NO_COUNTERPART)) for n in found]
    if not writing.models:
        raise Unreadable(_none_carried(writing.lost))
    parts = (header, *writing.sections())
    return Imported("\n\n".join(parts) + "\n", tuple(writing.lost), tuple(writing.models))


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
        usual_variable(_table(entry.get("litellm_params")))
        for _, entry in tables_of(found["model_list"])
    )
    return frozenset((*references(found), *unsaid))


def _none_carried(lost: list[Lost]) -> str:
    first = next((one for one in lost if one.key == "model_list"), None)
    why = f": {first.of}: {first.why}" if first else ""
    return f"has no model that could be carried{why}"


def _table(value: Any) -> Table:
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else {}


def _retries(settings: Mapping[str, Taking]) -> int | None:
    sections = (settings[name] for name in ("router_settings", "litellm_settings"))
    found = (section.number("num_retries", 0, 5) for section in sections)
    return next((int(number) for number in found if number is not None), None)


def _credentials(value: Any) -> Mapping[str, Table]:
    return {
        str(entry.get("credential_name")): _table(entry.get("credential_values"))
        for _, entry in tables_of(value)
    }


def _pairs(value: Any) -> Iterator[tuple[str, list[str]]]:
    """LiteLLM writes fallbacks as a list of tables: model → other models."""
    for _, entry in tables_of(value):
        for name, others in entry.items():
            yield name, [str(other) for other in others] if isinstance(others, list) else []


def _header(source: str, general: Taking, timeout: float | None) -> str:
    notes = (
        f"Imported from LiteLLM's {source}. `usetool check` says what this file means and what is "
        "missing;",
        "README.md and docs/config.md say what else it may say.",
    )
    key = general.secret("master_key", "USETOOL_KEY")
    server = toml.table(
        ("server",),
        {"host": "127.0.0.1", "port": 8000, "keys": [key] if key else []},
        ("Of this machine only; 0.0.0.0 for all. LiteLLM's usual port is 4000.",),
    )
    parts = ["\n".join(f"# {toml.comment(note)}" for note in notes), server]
    if timeout:
        parts.append(toml.table(("defaults", "timeouts"), waits(timeout)))
    return "\n\n".join(parts)


@dataclass(slots=True)
class _Writing:
    """The upstreams and models of the new file, as they are found."""

    around: Surroundings
    retries: int | None
    upstreams: dict[str, Table] = field(default_factory=dict)
    models: dict[str, Table] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)

    def add(self, place: int, entry: Table, credentials: Mapping[str, Table]) -> None:
        name = str(entry.get("model_name") or "")
        if not name:
            self.lose(f"model_list[{place}]", "it has no model_name: clients could not ask for it")
            return
        if name in self.models:
            self.lose(name, "a second deployment of one name: there is no load balancing here")
            return
        given = _table(entry.get("litellm_params"))
        shared = credentials.get(str(given.pop("litellm_credential_name", "")), {})
        params = Taking(name, "litellm_params.", {**shared, **given}, self.around)
        about = Taking(name, "model_info.", _table(entry.get("model_info")), self.around)
        try:
            carried = carry(params, about, self.retries)
            self.keep(name, carried)
        except NotCarried as error:
            self.lose(name, str(error))
            return
        self.lost += [*params.lost, *about.lost]

    def keep(self, name: str, carried: Carried) -> None:
        called = str(carried.model["name"])
        if name.count("*") > 1:
            raise NotCarried("its name has more than one *")
        if called.count("*") > name.count("*"):
            raise NotCarried("a * in the upstream's name needs one in the model's own")
        model = {"upstream": self.upstream(carried), **carried.model}
        self.models[name] = model | ({"name": None} if called == name else {})

    def upstream(self, carried: Carried) -> str:
        """The upstream that is already there, or a new one under a name that is free."""
        name, number = carried.upstream, 1
        while self.upstreams.setdefault(name, carried.service) != carried.service:
            number += 1
            name = f"{carried.upstream}-{number}"
        return name

    def aliases(self, aliases: Mapping[str, Any]) -> None:
        for alias, said in aliases.items():
            target = str(said.get("model", "")) if isinstance(said, dict) else str(said)
            found = PublicNames(self.models).meant(target)
            if alias in self.models:
                self.lose(alias, "is a model already", "router_settings.model_group_alias")
            elif found is None or "*" in alias:
                why = f"there is no model '{target}' for it"
                self.lose(alias, why, "router_settings.model_group_alias")
            else:
                self.models[alias] = {**self.models[found.id], "name": self.named(target, found.id)}
                self.notes[alias] = [f"Another name for {target}."]

    def named(self, target: str, model: str) -> str:
        """The upstream's name for what a client calls `target`."""
        name = str(self.models[model].get("name") or model)
        before, star, after = model.partition("*")
        carried = target[len(before) : len(target) - len(after)] if star else ""
        return name.replace("*", carried)

    def fallbacks(self, key: str, pairs: list[tuple[str, list[str]]]) -> None:
        for name, others in pairs:
            if name in self.models:
                written = toml.value(others)
                self.notes.setdefault(name, []).append(f"Not done yet: {key} = {written}")
            self.lose(name, f"{_NO_FALLBACK} ({', '.join(others)})", key)

    def lose(self, name: str, why: str, key: str = "model_list") -> None:
        self.lost.append(Lost(name, key, why))

    def sections(self) -> Iterator[str]:
        yield from (toml.table(("upstreams", n), table) for n, table in self.upstreams.items())
        for name, table in self.models.items():
            yield toml.table(("models", name), table, self.notes.get(name, ()))
