"""Our reading of every recorded answer against LiteLLM's; where they differ, the reason is here."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from adapters.protocol import Json
from tests.support.cases import CASES
from tests.support.fold import Answer, run
from tests.support.recordings import Interaction, Upstream, interactions, play, upstreams
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

# LiteLLM's name for the language of each upstream.
PROVIDERS: Mapping[str, str] = {
    "claude": "anthropic",
    "compatible": "openai",
    "deepseek": "deepseek",
    "ollama": "ollama_chat",
}
Question = tuple[str, str, bool]
"""Upstream, case, streamed."""

OVERLOADED = "LiteLLM calls Claude's 529 a mistake of the server; it is an overload, and passes"
DIFFERENCES: Mapping[tuple[str, str, bool, str], str] = {
    ("claude", "overloaded", False, "status"): OVERLOADED,
    ("claude", "overloaded", True, "status"): OVERLOADED,
    ("ollama", "parallel_calls", True, "calls"): (
        "LiteLLM gives each call of a stream index 0: clients glue them together (its issue 33678)"
    ),
}


def recorded(upstream: Upstream, case: str, streamed: bool) -> Interaction:
    *_, plain, stream = interactions(upstream.path(case))
    return stream if streamed else plain


def questions() -> Iterator[Question]:
    for upstream in upstreams():
        for case in upstream.cases if upstream.name in PROVIDERS else ():
            for streamed in (False, True):
                found = recorded(upstream, case, streamed)
                # With thoughts we ask Claude for a stream even if the client does not.
                if streamed or found.asked.get("stream") is not True:
                    yield upstream.name, case, streamed


def repeats(upstream: Upstream) -> Behaviour:
    """Say again what was recorded, to whoever asks for it by its address: /case/streamed/…"""

    async def behave(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            _, case, mode, *rest = head.split(" ")[1].split("/")
            if rest[-1] == "show":
                await peer.answer(b'{"capabilities":["tools"]}')
                continue
            found = recorded(upstream, case, mode == "true")
            headers = [f"{name}: {value}" for name, value in found.headers.items()]
            await peer.answer(found.body, *headers, status=f"{found.status} As Recorded")

    return behave


async def examined() -> dict[Question, Json]:
    """Ask LiteLLM every question, in one process."""
    asked = list(questions())
    async with AsyncExitStack() as stack:
        found = {upstream.name: upstream for upstream in upstreams()}
        addresses = {
            name: (await stack.enter_async_context(loopback(repeats(upstream)))).url
            for name, upstream in found.items()
        }
        sent = []
        for name, case, streamed in asked:
            body = {name: value for name, value in CASES[case].items() if name != "response_format"}
            special = found[name].reasoning if case.startswith("reasoning") else {}
            sent.append(
                {
                    **body,
                    "model": f"{PROVIDERS[name]}/{special.get('model', found[name].model)}",
                    "api_base": f"{addresses[name]}/{case}/{str(streamed).lower()}",
                    "stream": streamed,
                    **({"stream_options": {"include_usage": True}} if streamed else {}),
                }
            )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.oracle"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate(json.dumps(sent).encode())
    return dict(zip(asked, json.loads(said), strict=True))


def ours(answer: Answer) -> Json:
    if answer.error is not None:
        return {"status": answer.error.status}
    usage = answer.usage
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "calls": [(name, arguments) for _, name, _, arguments in answer.calls],
        "reason": answer.reason,
        "usage": [usage.prompt, usage.completion] if usage else None,
    }


def comparable(field: str, value: Any) -> Any:
    if field != "calls":
        return value
    return [(name, _parsed(arguments)) for name, arguments in value or ()]


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


@pytest.fixture(scope="module")
def verdicts() -> dict[Question, Json]:
    return run(examined())


def test_we_and_litellm_differ_only_where_a_reason_is_given(
    verdicts: dict[Question, Json],
) -> None:
    differing = {}
    for (name, case, streamed), theirs in verdicts.items():
        mine = ours(play(name, case).in_mode(streamed))
        for field, value in mine.items():
            if comparable(field, value) != comparable(field, theirs.get(field)):
                differing[name, case, streamed, field] = (value, theirs.get(field))
    assert differing.keys() == DIFFERENCES.keys(), differing
