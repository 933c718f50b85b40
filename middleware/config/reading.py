"""What a TOML file says → a `Config`, by the table of keys; every mistake is collected."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.kind import Kind, UnusableKind, all_kinds, find_kind, kind_names
from adapters.options import Environment, Wrong
from middleware.config import hints, keys, kind_keys
from middleware.config.access import (
    clients_mistakes,
    is_loopback,
    of_one_process,
    open_doors,
    two_keys,
    unset_keys,
)
from middleware.config.choices import mistakes_of_choices
from middleware.config.kind_keys import given_of, of_any_kind, timeouts_of
from middleware.config.pipelines import mistakes_of, usual_searchers
from middleware.config.places import Places
from middleware.config.shape import (
    CassettesConfig,
    ClientConfig,
    Config,
    LedgerConfig,
    Mistake,
    ModelConfig,
    RecallConfig,
    Secret,
    Server,
    StateConfig,
    TelemetryConfig,
    UpstreamConfig,
)
from middleware.config.tools import mistakes_of_tools, tools_of

_KEPT = 50
_NO_KIND = Kind(name="", about="", needs_address=False)
_TABLES = (
    *("server", "defaults", "state", "recall", "ledger", "telemetry", "cassettes", "clients"),
    *("upstreams", "models", "tools"),
)
Values = dict[str, Any]
Keys = Mapping[str, keys.Key]


@dataclass(slots=True)
class ConfigReading:
    environment: Environment
    places: Places
    elsewhere: frozenset[tuple[str, ...]] = frozenset()
    """Keys that the command line says, not the file."""
    mistakes: list[Mistake] = field(default_factory=list)

    def wrong(self, path: tuple[str, ...], text: str) -> None:
        line = 0 if path in self.elsewhere else self.places.line(path)
        self.mistakes.append(Mistake(hints.path_of(*path), text, line))

    def config(self, found: Values, source: str) -> Config:
        for name in sorted(found.keys() - set(_TABLES)):
            self.unknown((name,), _TABLES)
        misspelt = bool(self.mistakes)
        server = self.server(found.get("server", {}))
        defaults = self.table(found.get("defaults", {}), keys.DEFAULTS, ("defaults",))
        common = self.table(defaults["timeouts"], keys.TIMEOUTS, ("defaults", "timeouts"))
        upstreams = {
            name: self.upstream(name, entry, common)
            for name, entry in self.entries(found, "upstreams").items()
        }
        models = {
            name: self.model(name, entry, upstreams)
            for name, entry in self.entries(found, "models").items()
        }
        cassettes = self.cassettes(found.get("cassettes"))
        if not (models or misspelt):
            self.lacks_models(cassettes)
        for name, said in [*usual_searchers(models, upstreams)]:
            upstreams[name] = self.upstream(name, said, common)
        clients = {
            name: self.client(name, entry) for name, entry in self.entries(found, "clients").items()
        }
        config = Config(
            source=source,
            server=server,
            recall=self.recall(found),
            upstreams=upstreams,
            models=models,
            cassettes=cassettes,
            timeouts=given_of(common, keys.TIMEOUTS),
            clients=clients,
            state=StateConfig(**self.section(found, "state", keys.STATE)),
            ledger=LedgerConfig(**self.section(found, "ledger", keys.LEDGER)),
            telemetry=TelemetryConfig(**self.section(found, "telemetry", keys.TELEMETRY)),
            tools=tools_of(self.entries(found, "tools"), self.table, self.wrong, self.environment),
        )
        for path, text in [*self.across(config)]:
            self.wrong(path, text)
        return config

    def across(self, config: Config) -> Iterator[tuple[tuple[str, ...], str]]:
        """What sections say of each other and cannot mean."""
        server, upstreams, models, clients = (
            config.server, config.upstreams, config.models, config.clients,
        )  # fmt: skip
        asked = (*server.keys, *(client.key for client in clients.values()))
        if self.clean("upstreams") and self.clean("server", "keys"):
            yield from open_doors(server.host, asked, upstreams)
        yield from two_keys(asked, upstreams)
        yield from mistakes_of(models, upstreams)
        yield from mistakes_of_choices(models)
        yield from clients_mistakes(server, clients, models)
        yield from of_one_process(config)
        yield from mistakes_of_tools(config)

    def recall(self, found: Values) -> RecallConfig:
        values = self.section(found, "recall", keys.RECALL)
        usual = "file" if values["path"] else "state"
        return RecallConfig(**{**values, "store": values["store"] or usual})

    def section(self, found: Values, name: str, known: Keys) -> Values:
        return self.table(found.get(name, {}), known, (name,))

    def lacks_models(self, cassettes: CassettesConfig | None) -> None:
        """Where recordings answer they have models."""
        if (cassettes is None or cassettes.mode != "replay") and self.clean("models"):
            self.wrong(("models",), "There are none: write a [models.NAME] with its upstream.")

    def cassettes(self, found: Any) -> CassettesConfig | None:
        known, path = keys.CASSETTES, ("cassettes",)
        return None if found is None else CassettesConfig(**self.table(found, known, path))

    def entries(self, found: Values, section: str) -> Values:
        tables = found.get(section, {})
        if not isinstance(tables, dict):
            self.wrong((section,), f"must hold tables: write [{section}.NAME].")
            return {}
        return tables

    def table(self, found: Any, known: Keys, path: tuple[str, ...]) -> Values:
        """Read the keys of a table; a value that is wrong counts as not given."""
        values = {name: key.default for name, key in known.items()}
        if not isinstance(found, dict):
            self.wrong(path, f"must be a table: write [{hints.path_of(*path)}].")
            return values
        for name, value in found.items():
            if name in known:
                values[name] = self.value(value, known[name], (*path, name))
            else:
                self.unknown((*path, name), known, value)
        return values

    def value(self, value: Any, key: keys.Key, path: tuple[str, ...]) -> Any:
        try:
            return key.allowed.read(value, self.environment)
        except Wrong as wrong:
            found, words = key.allowed.found(value), key.allowed.words
            hint = f": {wrong}. It must be" if str(wrong) else ", but must be"
            self.wrong(path, f"is {found}{hint} {words}.")
            return key.default

    def unknown(self, path: tuple[str, ...], known: Collection[str], value: Any = None) -> None:
        if hint := hints.as_field(path, value):
            return self.wrong(path, f"is no key here.{hint}")
        hint = hints.suggest(path[-1], known) or hints.elsewhere(path)
        if not hint and isinstance(value, dict) and len(path) == 3:
            section, name, rest = path
            hint = f' If the name has a dot, it needs quotes: [{section}."{name}.{rest}"].'
        self.wrong(path, f"is no key here.{hint} There are: {', '.join(known)}.")

    def clean(self, *path: str) -> bool:
        """Nothing at or below this path was wrong so far: what is missing was not just misspelt."""
        start = hints.path_of(*path)
        return not any(f"{key}.".startswith(f"{start}.") for key, _, _ in self.mistakes)

    def server(self, found: Any) -> Server:
        values = self.table(found, keys.SERVER, ("server",))
        if values["keep_last"] is None:
            values["keep_last"] = _KEPT if is_loopback(values["host"]) else 0
        server = Server(**values)
        for path, text in unset_keys(server):
            self.wrong(path, text)
        return server

    def client(self, name: str, found: Any) -> ClientConfig:
        path = ("clients", name)
        values = self.table(found, keys.CLIENT, path)
        if values["key"] is None and self.clean(*path):
            self.wrong((*path, "key"), 'is missing: write key = "env:NAME".')
        return ClientConfig(id=name, **{**values, "key": values["key"] or Secret("")})

    def upstream(self, name: str, found: Any, common: Values) -> UpstreamConfig:
        path = ("upstreams", name)
        values = self.table(found, keys.UPSTREAM, path)
        kind = self.kind(values["kind"], (*path, "kind"))
        own = self.table(values["timeouts"], keys.TIMEOUTS, (*path, "timeouts"))
        address = values["base_url"] or kind.base_url
        if not address and kind.needs_address and self.clean(*path):
            self.wrong(
                (*path, "base_url"), 'is missing: write the address, base_url = "https://…".'
            )
        self.doubled(address, kind, (*path, "base_url"))
        return UpstreamConfig(
            id=name,
            kind=kind.name,
            base_url=address,
            api_keys=values["api_key"],
            auth=values["auth"] or kind.auth,
            proxy=values["proxy"],
            api_version=values["api_version"] or kind.api_version,
            headers=values["headers"],
            timeouts=timeouts_of(kind, common, own),
            options=self.given(
                values["options"] if kind.name else {},  # else that is the mistake, not these
                kind_keys.option_keys(kind.name),
                (*path, "options"),
            ),
            max_concurrent=values["max_concurrent"],
            queue=values["queue"],
        )

    def kind(self, name: str | None, path: tuple[str, ...]) -> Kind:
        if name is None:
            if self.clean(*path[:-1]):
                self.wrong(path, f"is missing: write one of {_kinds()}.")
            return _NO_KIND
        try:
            kind = find_kind(name)
        except UnusableKind as error:
            self.wrong(path, f"is '{name}', but {error}.")
            return _NO_KIND
        if kind is None:
            service = hints.meant(name)
            hint = f" For {name} write:{hints.stanza(path[1], service)}" if service else ""
            hint = hint or hints.suggest(name, kind_names())
            self.wrong(path, f"is '{name}', but must be one of {_kinds()}.{hint}")
            return _NO_KIND
        self.table(kind.timeouts, keys.TIMEOUTS, (*path, "timeouts"))
        self.table(kind.emulation, kind_keys.emulation_keys(), (*path, "emulation"))
        return kind

    def doubled(self, address: str, kind: Kind, path: tuple[str, ...]) -> None:
        for end in kind.endings:
            if address.endswith(end):
                right = address.removesuffix(end)
                self.wrong(path, f"ends with '{end}', which is added anyway: write \"{right}\".")
                return

    def model(self, name: str, found: Any, upstreams: Mapping[str, UpstreamConfig]) -> ModelConfig:
        path = ("models", name)
        written = found if isinstance(found, dict) else {}
        usual = _kind_of(written, upstreams)
        if usual is None:  # that is the mistake, not what only it would know
            usual, found = _NO_KIND, of_any_kind(written)
        values = self.table(found, kind_keys.model_keys(usual.name, written), path)
        pipeline = given_of(values, keys.PIPELINE)
        optional = bool(pipeline or values["choices"])
        self.reference(values["upstream"], upstreams, path, optional=optional)
        self.wildcards(name, values["name"], path)
        self.fields(values, path)
        return ModelConfig(
            id=name,
            upstream=values["upstream"] or "",
            name=values["name"] or name,
            tools=values["tools"],
            defaults=values["defaults"],
            override=values["override"],
            drop=values["drop"],
            retry=values["retry"],
            abilities=self.merged(values, "abilities", kind_keys.ability_keys(usual.name), path),
            options=self.merged(values, "options", kind_keys.option_keys(usual.name), path),
            recall=usual.remembers if values["recall"] is None else values["recall"],
            reasoning=values["reasoning"],
            pipeline=pipeline,
            cassettes=values["cassettes"],
            fallback=values["fallback"],
            choices=values["choices"],
            pick=values["pick"],
            weights=values["weights"],
            sticky=values["sticky"],
            price=values["price"],
            context_length=values["context_length"],
            **{name: values[name] for name in keys.SERVER_TOOLS},
        )

    def reference(
        self,
        upstream: str | None,
        upstreams: Collection[str],
        path: tuple[str, ...],
        optional: bool,
    ) -> None:
        known = ", ".join(upstreams) or "none yet; write an [upstreams.NAME]"
        if upstream is None and not optional and self.clean(*path):
            self.wrong((*path, "upstream"), f"is missing. There are: {known}.")
        if upstream is not None and upstream not in upstreams:
            hint = hints.suggest(upstream, upstreams)
            self.wrong((*path, "upstream"), f"is '{upstream}', but there are: {known}.{hint}")

    def merged(self, values: Values, place: str, known: Keys, path: tuple[str, ...]) -> Values:
        """A table, and what of it stands beside it, which wins."""
        beside = {name: key for name, key in known.items() if name not in keys.MODEL}
        return {**self.given(values[place], known, (*path, place)), **given_of(values, beside)}

    def given(self, found: Values, known: Keys, path: tuple[str, ...]) -> Values:
        return given_of(self.table(found, known, path), known)

    def fields(self, values: Values, path: tuple[str, ...]) -> None:
        """A field nobody knows may be the upstream's own; one that is nearly known is misspelt."""
        for place in ("defaults", "override"):
            for name in values[place]:
                if hint := hints.misspelt(name):
                    self.wrong((*path, place, name), f"is no field of a request.{hint}")
            for name in sorted(keys.OWN_FIELDS & values[place].keys()):
                self.wrong((*path, place, name), "is the client's own and cannot be set here.")

    def wildcards(self, public: str, name: str | None, path: tuple[str, ...]) -> None:
        if public.count("*") > 1:
            self.wrong(path, "has more than one *, but only one can be carried into the name.")
        if name and name.count("*") > public.count("*"):
            self.wrong(
                (*path, "name"),
                f"is '{name}', but a * is only carried over from a * in the public name: "
                f'write [models."…*"].',
            )


def _kind_of(written: Values, upstreams: Mapping[str, UpstreamConfig]) -> Kind | None:
    """The kind of a model's upstream; None where that is a mistake itself."""
    named = written.get("upstream")
    upstream = upstreams.get(named) if isinstance(named, str) else None
    if upstream is None:
        return _NO_KIND
    return upstream.language if upstream.kind else None


def _kinds() -> str:
    return ", ".join([kind.name for kind in all_kinds()])
