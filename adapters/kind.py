"""What the gateway must know of one provider's language: each package has its `KIND`.

Reading one is cheap: heavy packages are imported in `connect`, when a model of it is configured.
"""

from __future__ import annotations

import operator
import pkgutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import adapters
from adapters.options import FLAG, THINKS, made, option

if TYPE_CHECKING:  # reading a config needs no web package
    from importlib.metadata import EntryPoint

    from adapters.leaf import Leaf
    from adapters.shared.search import Searcher
    from adapters.shared.traits import Traits
    from adapters.wire.http import Link

GROUP = "usetool.kinds"
"""The entry points under which other distributions offer kinds: NAME = "package:KIND"."""
# Packages beside the kinds that are none.
_NO_KINDS = ("shared", "wire")
Auth = Literal["bearer", "x-api-key"]
_Options = TypeVar("_Options")


class UnusableKind(Exception):
    """A kind cannot be used; why, in words."""


@dataclass(frozen=True, slots=True)
class Settings(Generic[_Options]):
    """One model's view of its upstream, as the config says it: what a leaf is built from."""

    link: Link
    options: _Options
    """The model's keys over the upstream's over the kind's own."""
    abilities: Mapping[str, Any] = field(default_factory=dict)
    """What the config says the model can do; outranks every table and every answer."""
    api_version: str | None = None


@dataclass(frozen=True, slots=True)
class CommonAbilities:
    """What the gateway itself wants to know of any model; None: the config does not say."""

    tools: bool | None = option("It calls tools by its upstream's API", FLAG)
    vision: bool | None = option("It reads images", FLAG)
    thinking: str | None = option("Whether it thinks", THINKS)
    json_schema: bool | None = option("It can be held to a JSON schema", FLAG)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Of a kind that has none."""


class Service(NamedTuple):
    """A service people know by name."""

    kind: str
    base_url: str = ""
    """Where it is if the config does not say; empty: the kind knows, or the config has to say."""
    variable: str = ""
    """The environment variable its key usually stands in."""
    aliases: tuple[str, ...] = ()
    """What else people write for it, without blanks and signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A language that upstreams speak."""

    name: str
    about: str
    """One sentence for people."""
    connect: Callable[[Settings[Any]], Leaf] | None = None
    """Make the leaf of one model; `ValueError`: its options cannot be meant, `ImportError`: a
    package is missing. None: it answers no chats.
    """
    recorded: Callable[[Settings[Any]], Leaf] | None = None
    """Make the leaf that reads what was recorded of a model, where `connect`'s needs what is not
    there then: a library, a model's file. None: `connect`'s does it.
    """
    search: Callable[[Link | None], Searcher] | None = None
    """Make what searches for pipelines; None: it does not search."""
    options: type[Any] = NoOptions
    """A frozen dataclass; each field the config may set is an `option`, and so are `abilities`."""
    abilities: type[Any] = CommonAbilities
    """What may be said of a model beside the gateway's own `CommonAbilities`."""

    base_url: str = ""
    """Where it usually is."""
    needs_address: bool = True
    endings: tuple[str, ...] = ()
    """What the leaf adds to the address, longest first: its doubling is a common mistake."""
    beginnings: tuple[str, ...] = ()
    """Where the API may begin on a server that has it below an address of its own."""
    auth: Auth = "bearer"
    api_version: str | None = None
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """What differs from `adapters.wire.http.Timeouts`."""
    finds_keys: bool = False
    """It looks for keys in places of its own."""
    free: bool = False
    """It needs no key, and costs nothing. True: a gateway with such upstreams alone may listen for
    everybody without keys of its own.
    """

    remembers: bool = True
    """Its models want back what clients do not send (thoughts, signatures). True: the gateway puts
    `Recall` around them, if their config does not say `recall = false`.
    """
    leaks: bool = False
    """Its servers read calls out of text themselves, and miss some; some models have no tools.
    True: the gateway looks for calls in text, and asks by prompt where a model has no tools.
    """
    native_tools: bool | None = None
    """Whether its servers read calls and heed tool_choice, where that is so of all models. False:
    the gateway asks for calls by prompt.
    """
    emulation: Mapping[str, Any] = field(default_factory=dict)
    """What differs for tools by prompt."""
    known_by_name: Callable[[str], Traits] | None = None
    """What it knows of a model by its name alone."""
    catalog: tuple[str, ...] = ()
    """What LiteLLM's data puts before its models' names."""

    loads: bool = False
    """It runs on one's own machine: two models at once push each other out."""
    embedded: bool = False
    """It runs in a process of the gateway's own."""
    start_command: str = ""
    """What starts its server."""
    fetch_command: str = ""
    """What gets its server a model; such a server says at no cost what it has."""
    has_model: Callable[[Collection[str], str], bool] = operator.contains
    """Whether its server, which lists these models, answers to a name."""
    services: Mapping[str, Service] = field(default_factory=dict)
    """Services that speak it, by LiteLLM's or their own names."""
    language: str = ""
    """Of the `Carried` that its leaf takes from clients who speak it themselves."""
    provider: str = ""
    """What metrics and traces call who speaks it, by OpenTelemetry's list; empty: its name."""

    def __post_init__(self) -> None:
        for described in (self.options, self.abilities):
            fields(described)  # a TypeError where it is no dataclass

    def settings(
        self,
        link: Link,
        api_version: str | None = None,
        abilities: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Settings[Any]:
        """What its leaf is built from; of the options it takes its own."""
        version = api_version or self.api_version
        return Settings(link, made(self.options, options or {}), abilities or {}, version)


@cache
def kind_names() -> tuple[str, ...]:
    return (*_own_names(), *sorted(_offered().keys() - {*_own_names()}))


@cache
def find_kind(name: str) -> Kind | None:
    """The kind of this name, ours before others'; raise `UnusableKind` for a broken one."""
    if name in _own_names():
        package = import_module(f"adapters.{name}")
        return _named(getattr(package, "KIND", None), name, f"adapters.{name}:KIND")
    offered = _offered().get(name)
    return _loaded(offered) if offered else None


def known_kind(name: str) -> Kind:
    """The kind of a name the config was checked for."""
    kind = find_kind(name)
    if kind is None:
        raise LookupError(f"there is no kind '{name}'")
    return kind


def all_kinds() -> list[Kind]:
    """Every kind that can be used, those with an address of their own first."""
    kinds = [kind for name in kind_names() if (kind := usable_kind(name))]
    return sorted(kinds, key=lambda kind: not kind.base_url)


def usable_kind(name: str) -> Kind | None:
    try:
        return find_kind(name)
    except UnusableKind:
        return None


@cache
def _own_names() -> tuple[str, ...]:
    found = pkgutil.iter_modules(adapters.__path__)
    return tuple(one.name for one in found if one.ispkg and one.name not in _NO_KINDS)


@cache
def _offered() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group=GROUP)}


def _loaded(offered: EntryPoint) -> Kind:
    try:
        kind = offered.load()
    # Whoever asks for that kind is told which package it is and why; the kinds of others, and the
    # list of all, are not lost with it.
    except Exception as error:  # importing runs a stranger's code, which may raise anything
        why = f"{type(error).__name__}: {error}"
        raise UnusableKind(f"'{offered.value}' cannot be imported ({why})") from error
    kind = _named(kind, offered.name, offered.value)
    return replace(kind, connect=_guarded(kind.connect)) if kind.connect else kind


def _named(found: Any, name: str, place: str) -> Kind:
    """What was found, if it is a kind of the name by which it is found again."""
    if isinstance(found, Kind) and found.name == name:
        return found
    what = f"named '{found.name}'" if isinstance(found, Kind) else f"of type {type(found).__name__}"
    raise UnusableKind(f"'{place}' is no Kind with the name '{name}': it is {what}")


def _guarded(connect: Callable[[Settings[Any]], Leaf]) -> Callable[[Settings[Any]], Leaf]:
    """What fails in another way than `Kind.connect` may, its options cannot be meant either."""

    def connected(settings: Settings[Any]) -> Leaf:
        try:
            return connect(settings)
        except (ValueError, ImportError):
            raise
        # By its promise only its options can be at fault here, so it is a mistake of the config,
        # named with its key, instead of a traceback at the start.
        except Exception as error:  # a stranger's code again, which may raise anything
            raise ValueError(f"Its kind failed: {type(error).__name__}: {error}") from error

    return connected
