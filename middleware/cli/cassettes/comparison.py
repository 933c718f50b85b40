"""What `usetool cassette diff` compares: two files, or a file and what a model says now."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path

import yaml

from adapters.wire.http import Transport
from middleware.building import build
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.diff.outcome import CassetteDiff, compare
from middleware.cassettes.diff.rules import DiffRules, read_diff_rules
from middleware.cassettes.diff.samples import (
    AnswerCache,
    Answers,
    Survey,
    answers_to,
    ask_model,
    askable,
    failures,
    tokens_of,
)
from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
from middleware.cassettes.file import read_cassette
from middleware.cassettes.match import MatchRules, combined, key_of, read_rules
from middleware.cassettes.names import file_of
from middleware.cassettes.replay.playback import form_of
from middleware.cli.command import complain
from middleware.config import Config, load
from middleware.routing import Routes
from middleware.wrappers.route import Absent


def compared(options: argparse.Namespace) -> CassetteDiff:
    old = _read(options, options.old)
    rules = read_diff_rules(old.diff, f"{options.old}: diff")
    if options.rules:
        rules = rules.joined(_rules_of(options.rules))
    if options.against:
        return _against(options, old, rules)
    matching = combined(MatchRules(model="any"), read_rules(old.match, f"{options.old}: match"))

    def key(turn: CassetteTurn) -> Hashable:
        form = form_of(old, turn)
        return key_of(form.operation, form.value, matching)

    turns = compare(old.turns, _read(options, options.new).turns, key, rules)
    return CassetteDiff(options.old, options.new, [*turns], options.fail_on)


def _read(options: argparse.Namespace, name: str) -> Cassette:
    return read_cassette(file_of(Path(options.dir), name))


def _rules_of(file: str) -> DiffRules:
    try:
        said = yaml.safe_load(Path(file).read_text("utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise UnreadableCassette(file, f"cannot be read: {error}") from None
    return read_diff_rules(said, file)


def _against(options: argparse.Namespace, old: Cassette, rules: DiffRules) -> CassetteDiff:
    config = load(options.config)
    config = replace(config, recall=replace(config.recall, store="memory"))
    transport = Transport()
    routes = build(config, transport)
    identify = partial(_identity, config, routes)
    turns = _chosen(options, old)
    survey = Survey(turns, options.against, identify, options.n, options.baseline)
    cache = _cache()
    _announce(options, survey, cache)

    async def ask() -> Answers:
        try:
            live = partial(ask_model, routes, old)
            return await answers_to(survey.questions(), live, cache, options.allow_errors)
        finally:
            await transport.close()

    answers = asyncio.run(ask())
    found = [*survey.outcome(answers, rules)]
    many = failures(answers) > options.allow_errors
    return CassetteDiff(options.old, options.against, found, options.fail_on, many)


def _chosen(options: argparse.Namespace, old: Cassette) -> list[CassetteTurn]:
    turns, total = askable(old.turns), len(old.turns)
    if left := total - len(turns):
        complain(f"{left} of {total} turns hold no decision (errors, embeddings): not asked.")
    return turns[:: max(1, math.ceil(len(turns) / options.sample))]


def _announce(options: argparse.Namespace, survey: Survey, cache: AnswerCache) -> None:
    """Say what it will cost before anything is asked, and refuse what is too much."""
    questions = {each.key: each for each in survey.questions()}
    new = [each for key, each in questions.items() if cache.find(key) is None]
    tokens = sum(tokens_of(each.turn.answer) for each in new)
    complain(
        f"{len(questions)} question{'s' * (len(questions) != 1)}, {len(questions) - len(new)} of "
        f"them answered before. When they were recorded, the others took {tokens:,} tokens."
    )
    if len(new) > options.max_requests or tokens > options.max_tokens_total:
        raise CassetteRefused("That is more than is allowed. --sample N asks fewer turns.")


def _identity(config: Config, routes: Routes, name: str) -> str:
    """All of the config that decides who answers to a model's name, and what is asked."""
    found = routes.find(name)
    if isinstance(found, Absent):
        raise found.error()
    model = config.models[routes.entry(name).id]
    upstream = config.upstreams.get(model.upstream)
    address = (upstream.base_url, upstream.options) if upstream else ""
    return repr((config.models if model.pipeline else model, address, found.name))


def _cache() -> AnswerCache:
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return AnswerCache(Path(folder).expanduser() / "usetool" / "diff")
