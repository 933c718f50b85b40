"""What was made of a conversation's beginning is used again, and changes nothing that goes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import compatible, deepseek
from adapters.claude.capabilities import capability
from adapters.claude.encode import Options, Profile
from adapters.claude.encode import encode as claude_encode
from adapters.claude.tools import box_of
from adapters.compatible.dialect import Dialect
from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.ollama.encode import Options as OllamaOptions
from adapters.ollama.encode import encode as ollama_encode
from adapters.ollama.window import needed
from adapters.protocol import CARRIER, RESULT_OF, THOUGHTS_OF, Carried, ChatRequest, Json
from adapters.receipts import Receipt
from adapters.shared.beginnings import Beginnings
from adapters.shared.carriers import fit
from adapters.shared.toolbox import toolbox
from tests.support.dialogue import assistant, result, user
from tests.support.recordings import upstreams

Encode = Callable[[ChatRequest, bool], tuple[Json, Receipt, Any]]
PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TEXT = {"type": "text", "text": "look"}
MARK = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
TOOLS: tuple[Json, ...] = (
    {"type": "function", "function": {"name": "天气", "parameters": {"type": "object"}}},
    {"type": "custom", "custom": {"name": "sql"}},
    {"type": "function", "function": {"name": "f", "strict": True, "odd": 1}},
)
# Long enough to be remembered, whatever follows.
OPENING: tuple[Json, ...] = tuple(chain(*[(user(f"q{n}"), assistant(f"a{n}")) for n in range(4)]))


def claude(model: str, cache: str = "off", **abilities: Any) -> Encode:
    able = capability(model, abilities)

    def encode(request: ChatRequest, kept: bool) -> tuple[Json, Receipt, Any]:
        profile = Profile(able, options=Options(cache=cache, error_results=True))
        return *claude_encode(request, box_of(request, able), profile, kept), None

    return encode


def ollama(able: Abilities) -> Encode:
    def encode(request: ChatRequest, kept: bool) -> tuple[Json, Receipt, Any]:
        box = toolbox(request)
        body, receipt, pictures = ollama_encode(request, box, able, OllamaOptions(), kept)
        return body, receipt, needed(body, pictures)

    return encode


LEAVES: Mapping[str, Encode] = {
    "claude": claude("claude-sonnet-4-5"),
    "caching": claude("claude-sonnet-4-5", cache="auto"),
    "newest": claude("claude-opus-5-5"),
    "foreign": claude("kimi-k2"),
    "blind": claude("claude-sonnet-4-5", vision=False),
    "compatible": lambda asked, kept: compatible.encode(asked, Dialect(), kept=kept),
    "echoing": lambda asked, kept: compatible.encode(
        asked, Dialect(reasoning_echo=True, custom_tools=True, vision=False), kept=kept
    ),
    "deepseek": lambda asked, kept: deepseek.encode(asked, deepseek.Habits(vision=True), kept),
    "beta": lambda asked, kept: deepseek.encode(asked, deepseek.Habits(beta=True), kept),
    "ollama": ollama(Abilities()),
    "unseeing": ollama(Abilities(vision=False)),
}
every_leaf = pytest.mark.parametrize("name", LEAVES)


def sent(name: str, request: ChatRequest, kept: bool) -> object:
    """The bytes of the body and the receipt, or why there are none."""
    try:
        body, receipt, more = LEAVES[name](request, kept)
    except BadRequest as error:
        return error.message
    return orjson.dumps(body), receipt, None if name in _BOXED else more


_BOXED = frozenset(("compatible", "echoing", "deepseek", "beta"))


def asked(messages: Sequence[Json], **more: Any) -> ChatRequest:
    return ChatRequest("m", tuple(messages), TOOLS, params=more)


def assert_same(name: str, messages: Sequence[Json], **more: Any) -> None:
    request = asked(messages, **more)
    plain = sent(name, request, kept=False)
    assert sent(name, request, kept=True) == plain
    assert sent(name, request, kept=True) == plain, "the second time"


# Conversations that grow, as the objects a door gives --------------------------------------------

_text = st.sampled_from(["", " ", "a", "好 b\n"])
_content = st.one_of(
    _text,
    st.lists(st.sampled_from([TEXT, PIXEL, {**TEXT, **MARK}, {**TEXT, "odd": 1}]), max_size=3),
)
_more: st.SearchStrategy[Json] = st.sampled_from([{}, {"name": "Li"}, MARK, {"odd": 1}])
_user = st.builds(lambda content, more: {**user(content), **more}, _content, _more)
_system = st.builds(lambda text: {"role": "system", "content": text}, _text)
_thoughts: st.SearchStrategy[Json] = st.sampled_from(
    [{}, {"thinking_blocks": [THOUGHT]}, {"reasoning_content": "hm"}, {"refusal": "no"}, MARK]
)
_answer = st.builds(lambda text, more: {**assistant(text), **more}, _text, _thoughts)
_identity = st.sampled_from(["1", "c:1", "好"])
_arguments = st.sampled_from(["{}", '{"a":1.0}', "[]"])


@st.composite
def _round(draw: st.DrawFn) -> list[Json]:
    ids = draw(st.lists(_identity, min_size=1, max_size=3, unique=True))
    message = assistant(draw(_text), *[(one, "天气", draw(_arguments)) for one in ids])
    if draw(st.booleans()):
        message["tool_calls"][0] = {
            "id": ids[0], "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}
        }  # fmt: skip
    results = [result(one, draw(_text)) for one in draw(st.permutations(ids))]
    if draw(st.booleans()):
        results[0] |= {"content": [TEXT, PIXEL], RESULT_OF: "art"}
    return [{**message, **draw(_thoughts)}, *results]


_turn = st.one_of(_user.map(lambda one: [one]), _system.map(lambda one: [one]), _round())
_turn |= _answer.map(lambda one: [one])


@dataclass
class Door:
    """Gives a message that it has seen as the same object again."""

    seen: dict[bytes, Json] = field(default_factory=dict)

    def parse(self, turns: Sequence[Sequence[Json]]) -> tuple[Json, ...]:
        texts = map(orjson.dumps, chain(OPENING, *turns))
        return tuple(self.seen.setdefault(text, orjson.loads(text)) for text in texts)


@every_leaf
@settings(max_examples=25)
@given(turns=st.lists(_turn, min_size=1, max_size=6), other=_turn)
def test_a_growing_conversation_goes_up_as_one_that_was_never_seen(
    name: str, turns: list[list[Json]], other: list[Json]
) -> None:
    door = Door()
    for count in range(1, len(turns) + 1):
        assert_same(name, door.parse(turns[:count]))
    half = len(turns) // 2
    forked = [*turns[:half], other, *turns[half:]]
    for count in range(half, len(forked) + 1):
        assert_same(name, door.parse(forked[:count]))
    assert_same(name, door.parse([*turns, *turns]))
    assert_same(name, door.parse(turns), prompt_cache_options={"ttl": "24h"})
    assert_same(name, door.parse(turns), response_format={"type": "json_object"})


@every_leaf
@settings(max_examples=15)
@given(turns=st.lists(_turn, min_size=2, max_size=6))
def test_what_was_written_stays_as_the_conversation_goes_on(
    name: str, turns: list[list[Json]]
) -> None:
    def body(messages: tuple[Json, ...], kept: bool) -> Json | None:
        try:
            return LEAVES[name](asked(messages), kept)[0]
        except BadRequest:
            return None

    door = Door()
    conversations = [door.parse(turns[:count]) for count in range(1, len(turns) + 1)]
    bodies = [body(messages, kept=True) for messages in conversations]
    for messages, written in zip(conversations, bodies, strict=True):
        assert orjson.dumps(written) == orjson.dumps(body(messages, kept=False))


@every_leaf
@pytest.mark.parametrize("upstream", upstreams(), ids=lambda one: f"{one.name}-{one.model}")
def test_recorded_requests_go_up_as_before(name: str, upstream: Any) -> None:
    door = Door()
    for case in upstream.cases:
        request = upstream.request(case, streamed=True)
        messages = door.parse([request.messages])
        for until in (len(OPENING), len(messages) - 1, len(messages)):
            again = replace(request, messages=messages[:until])
            plain = sent(name, again, kept=False)
            assert sent(name, again, kept=True) == plain


def test_a_turn_in_claudes_own_words_is_whole_before_it_counts() -> None:
    said = [result("1", "a"), user("b")]
    own = {"role": "user", "content": [{"type": "text", "text": "as it was said"}]}
    carried: list[Json] = [
        {**one, CARRIER: Carried("anthropic", (own, at, 2), beside=one), THOUGHTS_OF: "x"}
        for at, one in enumerate(said)
    ]
    round_ = (*OPENING, assistant(None, ("1", "f", "{}")))
    conversations = (
        (*round_, *carried),
        (*round_, carried[0], user("c"), *OPENING),
        (*round_, *carried, *OPENING, user("d")),
    )
    for messages in conversations:
        for until in range(len(round_) + 1, len(messages) + 1):
            fitted = fit(asked(messages[:until]), "anthropic", "y")[0]
            plain = sent("claude", fitted, kept=False)
            assert sent("claude", fitted, kept=True) == plain
            again = fit(asked(messages[:until]), "anthropic", "y")[0]
            assert [*map(id, again.messages[:-1])] == [*map(id, fitted.messages[:-1])]


def test_texts_in_claudes_own_words_stay_texts_where_breakpoints_are_too_many() -> None:
    marked = {"role": "user", "content": [{**TEXT, **MARK}]}
    own = [*OPENING, *[marked] * 6]
    said = [{**one, CARRIER: Carried("anthropic", (one, 0, 1), beside=one)} for one in own]
    assert_same("claude", said)


# The memory itself --------------------------------------------------------------------------------


class Reader:
    """Counts what it is given."""

    def __init__(self, said: list[Json], count: list[int]) -> None:
        self.said, self.count = said, count

    def copy(self) -> Reader:
        return Reader([*self.said], self.count)

    def add(self, message: Json) -> None:
        if "refused" in message:
            raise BadRequest("no")
        self.said.append(message)
        self.count[0] += 1


class Memory:
    def __init__(self, most_bytes: int = 1 << 20) -> None:
        self.kept = Beginnings(most_bytes)
        self.count = [0]

    def read(self, messages: tuple[Json, ...], context: str = "") -> int:
        """How many messages had to be read."""
        before = self.count[0]
        writer = self.kept.writer(messages, lambda: Reader([], self.count), context)
        assert [*map(id, writer.said)] == [*map(id, messages)]
        return self.count[0] - before


def conversations(count: int, length: int = 10) -> list[tuple[Json, ...]]:
    return [
        tuple(user(f"{number}.{at}" + 100 * "x") for at in range(length)) for number in range(count)
    ]


def test_only_what_is_new_is_read() -> None:
    memory = Memory()
    (messages,) = conversations(1, 20)
    grown = [memory.read(messages[:count]) for count in (7, 7, 9, 9, 12, 20, 20)]
    assert grown == [7, 7, 9, 1, 4, 9, 1]
    assert memory.read(messages[:19]) == 0
    edited = (*messages[:15], user("else"), *messages[16:])
    assert [memory.read(edited), memory.read(edited), memory.read(messages)] == [20, 1, 1]


@pytest.mark.parametrize("context", ["", "another"])
def test_equal_messages_that_are_other_objects_are_read_anew(context: str) -> None:
    memory = Memory()
    (messages,) = conversations(1)
    assert memory.read(messages) == 10
    assert memory.read(tuple(map(dict, messages)), context) == 10


def test_another_context_and_another_order_are_read_anew() -> None:
    memory = Memory()
    (messages,) = conversations(1)
    assert memory.read(messages) == 10
    assert memory.read(messages, "another") == 10
    assert memory.read(messages[::-1]) == 10
    assert memory.read((*messages[:5], *messages)) == 15


def test_a_turn_that_is_refused_leaves_nothing_of_itself() -> None:
    memory = Memory()
    (messages,) = conversations(1, 20)
    assert memory.read(messages[:10]) == 10
    with pytest.raises(BadRequest):
        memory.read((*messages[:10], messages[11], {"refused": 1}, *messages[12:]))
    assert [memory.read(messages[:count]) for count in (10, 11, 14)] == [10, 2, 4]
    assert memory.kept.size > 0


def test_it_stays_within_its_bytes_and_forgets_the_longest_unused() -> None:
    memory = Memory(100_000)
    said = conversations(30)
    for messages in said:
        assert memory.read(messages) == 10
        assert memory.read(said[0]) == 1
        assert memory.kept.size <= 100_000
    assert memory.read(said[-1]) == 1
    assert memory.read(said[1]) == 10


def test_what_is_too_large_or_no_json_is_not_kept() -> None:
    memory = Memory(20_000)
    (messages,) = conversations(1, 40)
    assert memory.read(messages) == memory.read(messages) == 40
    odd = (*messages[:9], user(1 << 80))
    assert memory.read(odd) == memory.read(odd) == 10
    assert memory.kept.size == 0


def test_a_longer_conversation_takes_the_place_of_the_shorter() -> None:
    memory, fresh = Memory(), Memory()
    (messages,) = conversations(1, 40)
    for count in range(8, 41):
        memory.read(messages[:count])
    fresh.read(messages)
    assert memory.kept.size == pytest.approx(fresh.kept.size, rel=0.01)


def test_a_message_with_a_cache_breakpoint_at_the_end_is_not_counted_on() -> None:
    memory = Memory()
    (messages,) = conversations(1, 20)
    marked = {**messages[14], "content": [{**TEXT, **MARK}]}
    assert memory.read((*messages[:14], marked, *messages[15:18])) == 18
    assert memory.read(messages) == 6
