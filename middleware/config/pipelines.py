"""What a pipeline's keys must say of the models and upstreams they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.kind import all_kinds, known_kind, usable_kind
from middleware.config.public_names import PublicNames
from middleware.config.shape import ModelConfig, UpstreamConfig

_PARTS = ("reasoner", "answerer")
Path = tuple[str, ...]


def mistakes_of(
    models: Mapping[str, ModelConfig], upstreams: Mapping[str, UpstreamConfig]
) -> Iterator[tuple[Path, str]]:
    for model in models.values():
        said, path = model.pipeline, ("models", model.id)
        if said and "pipeline" not in said:
            first = next(iter(said))
            yield (*path, first), 'is for pipelines: add pipeline = "reason-then-answer".'
            continue
        for part in _PARTS if said else ():
            yield from _of_part(part, said, models, path)
        if said and model.upstream:
            yield (*path, "upstream"), "is not for pipelines: reasoner and answerer have their own."
        yield from _of_search(said.get("search"), upstreams, path)


def _of_part(
    part: str, said: Mapping[str, Any], models: Mapping[str, ModelConfig], path: Path
) -> Iterator[tuple[Path, str]]:
    name = said.get(part)
    if name is None:
        yield (*path, part), "is missing: write the name of a model of this file."
        return
    found = PublicNames(models).meant(name)
    if found is None:
        yield (*path, part), f"is '{name}', but there is no such model in this file."
    elif models[found.id].pipeline:
        yield (*path, part), f"is '{name}', which is a pipeline itself: name a plain model."


def _of_search(
    name: str | None, upstreams: Mapping[str, UpstreamConfig], path: Path
) -> Iterator[tuple[Path, str]]:
    if name is None or (name in upstreams and _searches(upstreams[name].kind)):
        return
    kinds = " or ".join([kind.name for kind in all_kinds() if kind.search])
    text = f"is '{name}', but must name an upstream of kind {kinds}: write an [upstreams.{name}]."
    yield (*path, "search"), text


def usual_searchers(
    models: Mapping[str, ModelConfig], upstreams: Mapping[str, UpstreamConfig]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Kinds searched by their own names: their upstream has no more than a key, if that."""
    named = {model.pipeline["search"] for model in models.values() if "search" in model.pipeline}
    for name in filter(_searches, sorted(named - upstreams.keys())):
        service = known_kind(name).services.get(name)
        yield name, {"kind": name, **({"api_key": f"env:{service.variable}"} if service else {})}


def _searches(kind: str) -> bool:
    found = usable_kind(kind)
    return found is not None and found.search is not None
