"""Where the images stand that server tools give, in each language."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.protocol import RESULT_OF, ChatRequest, Json
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.wrappers.emulation.ask.conversation import rendered

PIXEL = "iVBORw0KGgo="
CONTENT = [
    {"type": "text", "text": "a red dot"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
]
CALL = {"id": "c1", "type": "function", "function": {"name": "draw", "arguments": "{}"}}
HISTORY: tuple[Json, ...] = (
    {"role": "user", "content": "draw"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": CONTENT, RESULT_OF: "art"},
)


def sent(kind: str, tools: str = "native", **more: Any) -> tuple[list[Json], list[str]]:
    """The messages a language makes of it, and the receipt."""
    said = "\n".join(f"{name} = {orjson.dumps(value).decode()}" for name, value in more.items())
    text = (
        f'[upstreams.up]\nkind = "{kind}"\nbase_url = "http://127.0.0.1:1"\napi_key = "k"\n'
        f'[models.m]\nupstream = "up"\nname = "some-model"\ntools = "{tools}"\n{said}\n'
    )
    routes = build(config.parse(text, environment={}), Transport())
    (planned,) = routes.find("m").plan(ChatRequest("m", HISTORY))
    notes = [f"{note.code}:{note.field}" for note in planned.receipt]
    return planned.body["messages"], [note for note in notes if note.startswith("image")]


def test_claude_has_them_in_the_result() -> None:
    messages, notes = sent("claude")
    (block,) = messages[-1]["content"]
    assert [part["type"] for part in block["content"]] == ["text", "image"]
    assert block["content"][1]["source"]["data"] == PIXEL
    assert notes == []


@pytest.mark.parametrize(
    ("kind", "more"), [("compatible", {}), ("deepseek", {"vision": True}), ("ollama", {})]
)
def test_others_have_them_in_a_message_behind_the_results(kind: str, more: Json) -> None:
    messages, notes = sent(kind, **more)
    result, behind = messages[-2:]
    assert (result["role"], behind["role"], notes) == ("tool", "user", [])
    assert "a red dot" in result["content"]
    assert PIXEL not in orjson.dumps(result).decode()
    assert RESULT_OF not in result
    assert PIXEL in orjson.dumps(behind).decode()


@pytest.mark.parametrize("kind", ["claude", "deepseek", "ollama", "compatible"])
def test_who_reads_none_is_told_that_there_was_one(kind: str) -> None:
    messages, notes = sent(kind, vision=False)
    assert notes == ["image_dropped:tools.art"]
    said = orjson.dumps(messages[-1]).decode()
    assert PIXEL not in said
    assert "a red dot" in said
    assert "[image]" in said


@pytest.mark.parametrize("kind", ["claude", "ollama", "compatible"])
def test_by_prompt_they_stand_beside_the_results(kind: str) -> None:
    messages, notes = sent(kind, "emulated", vision=True)
    behind = messages[-1]
    assert (behind["role"], notes, RESULT_OF in behind) == ("user", [], False)
    said = orjson.dumps(behind).decode()
    assert PIXEL in said
    assert "TOOL_RESULT" in said
    assert "a red dot" in said


@pytest.mark.parametrize("kind", ["claude", "ollama", "compatible"])
def test_by_prompt_who_reads_none_is_told_so_too(kind: str) -> None:
    messages, notes = sent(kind, "emulated", vision=False)
    assert notes == ["image_dropped:tools.art"]
    said = orjson.dumps(messages[-1]).decode()
    assert (PIXEL in said, "[image]" in said, "TOOL_RESULT" in said) == (False, True, True)


def test_images_stay_apart_from_what_the_user_says_next() -> None:
    history = rendered((*HISTORY, {"role": "user", "content": "and now?"}), ())
    assert [message["role"] for message in history[-2:]] == ["user", "user"]
    assert history[-1] == {"role": "user", "content": "and now?"}
    assert history[-2][RESULT_OF] == "art"
