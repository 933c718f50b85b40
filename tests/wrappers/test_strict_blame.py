"""`strict` refuses what is lost of the client's words, not what the gateway puts in itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.protocol import (
    ChatRequest,
    Events,
    Finish,
    Json,
    Opened,
    Planned,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
)
from adapters.receipts import Note
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.settings import Way
from middleware.wrappers.recall import Recall
from tests.support.dialogue import assistant, result

SERVER = '[server]\nstrict = true\n[recall]\nstore = "off"\n'
OLLAMA = (
    SERVER
    + """
[upstreams.o]
kind = "ollama"
base_url = "http://127.0.0.1:1"
[models.m]
upstream = "o"
tools = "emulated"
"""
)
USER = {"role": "user", "content": "How cold is it?"}


def tool(**properties: Any) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": "get_weather", "parameters": schema}}


# The grammar of an Ollama cannot say the quote.
QUOTED = tool(**{'say "city"': {"type": "string"}})
PLAIN = tool(city={"type": "string"})
FORM = {
    "type": "json_schema",
    "json_schema": {"name": "f", "schema": QUOTED["function"]["parameters"]},
}


def request(*tools: Json, extra: Json | None = None, **params: Any) -> ChatRequest:
    choice = "required" if tools else None
    return ChatRequest("m", (USER,), tools, choice, params, extra or {})


def planned(text: str, asked: ChatRequest) -> tuple[Planned, ...]:
    return build(config.parse(text, environment={}), Transport()).find("m").plan(asked)


def blamed(text: str, asked: ChatRequest) -> str | None:
    with pytest.raises(BadRequest) as caught:
        planned(text, asked)
    assert caught.value.code == "unsupported_parameter"
    return caught.value.param


def test_the_form_of_an_emulated_call_is_ours() -> None:
    (call,) = planned(OLLAMA, request(QUOTED))
    assert "format" in call.body
    assert call.receipt == ()


def test_the_form_of_the_clients_own_answer_is_the_clients() -> None:
    assert blamed(OLLAMA, request(response_format=FORM)) == "response_format"
    assert blamed(OLLAMA, request(QUOTED, response_format=FORM)) == "response_format"
    free = request(QUOTED, response_format={"type": "text"})
    assert planned(OLLAMA, free)[0].receipt == ()


def test_a_form_in_the_upstreams_words_outranks_the_form_of_a_call() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    (call,) = planned(OLLAMA, request(PLAIN, extra={"format": form}))
    assert call.body["format"] == form
    assert call.receipt == ()


class Picky:
    """A leaf that names, or refuses, every field of these that it is sent."""

    def __init__(self, *names: str, refuses: bool = False) -> None:
        self.names, self.refuses = names, refuses
        self.asked: list[ChatRequest] = []

    def plan(self, asked: ChatRequest) -> tuple[Planned, ...]:
        self.asked.append(asked)
        sent = {**asked.params, **asked.extra}
        lost = [name for name in self.names if name in sent]
        if lost and self.refuses:
            raise BadRequest("It is too deep.", param=lost[0])
        notes = tuple(Note("parameter_dropped", f"{name}.part[0]", "no") for name in lost)
        return (Planned("p", "", sent, notes),)

    async def stream(self, asked: ChatRequest) -> Events:
        (call,) = self.plan(asked)
        yield (Opened(call.receipt, Upstream("p")), TextDelta('{"name": "get_weather", '))
        yield (TextDelta('"arguments": {"city": "a"}}'), Finish("stop"))


WAYS: dict[Way, str] = {
    "response_format": "response_format",
    "structured_outputs": "structured_outputs",
    "json_schema": "json_schema",
    "lark": "grammar",
}


def opened(adapter: EmulatedTools, asked: ChatRequest) -> Opened:
    async def first() -> Opened:
        batches = [batch async for batch in adapter.stream(asked)]
        assert isinstance(batches[-1][-1], Finish)
        assert isinstance(batches[0][0], Opened)
        return batches[0][0]

    return asyncio.run(first())


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_emulation_asks_with_is_told_as_lost(way: Way) -> None:
    adapter = EmulatedTools(Picky(WAYS[way], "stop"), Emulation(constraint=way))
    (call,) = adapter.plan(request(PLAIN))
    assert WAYS[way] in call.body
    assert (call.receipt, opened(adapter, request(PLAIN)).receipt) == ((), ())
    kept = adapter.plan(request(PLAIN, stop=["."]))
    assert [note.field for note in kept[0].receipt] == ["stop.part[0]"]


@pytest.mark.parametrize("way", WAYS)
def test_a_leaf_that_refuses_the_form_is_asked_without_it(way: Way) -> None:
    leaf = Picky(WAYS[way], refuses=True)
    adapter = EmulatedTools(leaf, Emulation(constraint=way))
    (call,) = adapter.plan(request(PLAIN))
    assert WAYS[way] not in call.body
    assert opened(adapter, request(PLAIN)).receipt == ()
    assert WAYS[way] not in {**leaf.asked[-1].params, **leaf.asked[-1].extra}


def test_what_the_client_said_is_refused_with_and_without_the_form() -> None:
    adapter = EmulatedTools(Picky("audio", refuses=True))
    with pytest.raises(BadRequest) as caught:
        adapter.plan(request(PLAIN, audio={}))
    assert caught.value.param == "audio"


CLAUDE = (
    SERVER
    + """
[upstreams.c]
kind = "claude"
[models.m]
upstream = "c"
name = "claude-opus-4-8"
"""
)


def test_what_the_config_says_is_no_loss_of_the_clients() -> None:
    assert blamed(CLAUDE, request(temperature=0.5)) == "temperature"
    for place in ("defaults", "override"):
        text = f"{CLAUDE}{place} = {{ temperature = 0.2, top_k = 3 }}\n"
        (call,) = planned(text, request())
        assert {note.field for note in call.receipt} == {"temperature", "top_k"}
        assert "temperature" not in call.body
    text = f"{CLAUDE}defaults = {{ temperature = 0.2 }}\n"
    assert blamed(text, request(temperature=0.2)) == "temperature"
    assert blamed(text, request(seed=1)) == "seed"


def test_what_the_config_says_of_thinking_is_not_told_in_a_word_of_the_clients() -> None:
    thinking = 'defaults = { thinking = { type = "enabled", budget_tokens = 9000 } }'
    text = f"{CLAUDE.replace('opus-4-8', 'sonnet-4-5')}{thinking}\n"
    (call,) = planned(text, request(max_tokens=5))
    assert [note.field for note in call.receipt] == ["thinking"]
    assert blamed(text, request(max_tokens=5, reasoning_effort="low")) == "reasoning_effort"


PIPELINE = (
    CLAUDE.replace("models.m", "models.answerer")
    + """
defaults = { temperature = 0.2 }
[models.reasoner]
upstream = "c"
name = "claude-opus-4-8"
defaults = { top_k = 3 }
[models.m]
pipeline = "reason-then-answer"
reasoner = "reasoner"
answerer = "answerer"
reasoner_fields = { top_p = 0.5, max_tokens = 9000 }
"""
)


def test_nor_is_what_it_says_of_the_parts_of_a_pipeline() -> None:
    thinking, answering = planned(PIPELINE, request())
    assert {note.field for note in thinking.receipt} >= {"top_k", "top_p"}
    assert {note.field for note in answering.receipt} == {"temperature"}
    assert blamed(PIPELINE, request(temperature=0.5)) == "temperature"


COMPATIBLE = """
[server]
strict = true
[recall]
store = "memory"
[upstreams.c]
kind = "compatible"
base_url = "http://127.0.0.1:1"
[models.m]
upstream = "c"
recall = true
"""


class Thinker:
    """Thinks though nobody asked."""

    def plan(self, asked: ChatRequest) -> tuple[Planned, ...]:
        raise AssertionError

    async def stream(self, asked: ChatRequest) -> Events:
        yield (Opened((), Upstream("t")), ReasoningDelta("hm"))
        yield (ToolCallStart(0, "call_1", "get_weather"), ToolCallDelta(0, "{}"))
        yield (Finish("tool_calls"),)


def recall_of(adapter: Any) -> Recall:
    while not isinstance(adapter, Recall):
        adapter = adapter.inner
    return adapter


def test_nor_is_a_thought_that_recall_puts_back_where_none_is_taken() -> None:
    route = build(config.parse(COMPATIBLE, environment={}), Transport()).find("m")
    recall = recall_of(route)

    async def think() -> None:
        async for _ in replace(recall, inner=Thinker()).stream(request()):
            pass

    asyncio.run(think())
    answer = assistant(None, ("call_1", "get_weather", "{}"))
    later = replace(request(), messages=(USER, answer, result("call_1", "5")))
    restored = recall._history(later)
    assert restored is not None
    assert restored.request().messages[1]["reasoning_content"] == "hm"
    assert [note.code for note in route.plan(later)[0].receipt] == ["thoughts_restored"]
    own = replace(later, messages=(USER, {**answer, "reasoning_content": "hm"}, later.messages[2]))
    with pytest.raises(BadRequest) as caught:
        route.plan(own)
    assert caught.value.param == "messages[1].reasoning_content"
