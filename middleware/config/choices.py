"""What a model that is made of others, or falls back to others, must say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from middleware.config.hints import suggest
from middleware.config.public_names import PublicNames
from middleware.config.shape import ModelConfig

Path = tuple[str, ...]
_PARTS = ("reasoner", "answerer")


def mistakes_of_choices(models: Mapping[str, ModelConfig]) -> Iterator[tuple[Path, str]]:
    names = PublicNames(models)
    for model in models.values():
        path = ("models", model.id)
        yield from _of_own_keys(model, path)
        for key, named in (("choices", model.choices), ("fallback", model.fallback)):
            for name in named:
                if names.meant(name) is None:
                    hint = suggest(name, models)
                    yield (*path, key), f"has '{name}', but there is no such model here.{hint}"
                elif "*" in name and "*" not in model.name:
                    yield (*path, key), f"has '{name}', but '{model.name}' has no * to fill it."
            if len(set(named)) < len(named):
                yield (*path, key), "has a name twice."
        if circle := _circle(model, models, names):
            key = "choices" if circle[0] in model.choices else "fallback"
            told = " → ".join((model.id, *circle))
            yield (*path, key), f"leads back to itself: {told}. Take one of these names out."


def _of_own_keys(model: ModelConfig, path: Path) -> Iterator[tuple[Path, str]]:
    if not model.choices:
        for key, given in (("weights", model.weights), ("pick", model.pick != "order")):
            if given:
                yield (*path, key), "is for models with choices."
        return
    if model.upstream:
        yield (*path, "upstream"), "is not for models with choices: those have their own."
    if model.pipeline:
        yield (*path, "pipeline"), "is not for models with choices: name the pipeline among them."
    if model.weights and len(model.weights) != len(model.choices):
        told = f"has {len(model.weights)} numbers for {len(model.choices)} choices"
        yield (*path, "weights"), f"{told}: write one for each."


def _circle(
    start: ModelConfig, models: Mapping[str, ModelConfig], names: PublicNames
) -> tuple[str, ...]:
    """The way from a model back to itself; empty if there is none."""
    ways: list[tuple[str, ...]] = [()]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        model = models[way[-1]] if way else start
        # What a pipeline says of its own parts is looked at where pipelines are.
        said = {} if model is start else model.pipeline
        parts = [said[part] for part in _PARTS if part in said]
        for name in (*model.choices, *model.fallback, *parts):
            meant = names.meant(name)
            if meant is None:
                continue
            if meant.id == start.id:
                return (*way, meant.id)
            if meant.id not in seen:
                seen.add(meant.id)
                ways.append((*way, meant.id))
    return ()
