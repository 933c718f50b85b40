"""Messages and answers in DeepSeek's words, and where they go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.deepseek import DeepSeek, Habits, connect
from adapters.errors import Refused, Unavailable, from_status
from adapters.protocol import Json, RequestContext
from adapters.shared.history import GO_ON
from tests.adapters.deepseek.asking import (
    BETA,
    HELLO,
    PLAIN,
    ROUND,
    THINKER,
    heard,
    refused,
    request,
    settings,
    written,
)
from tests.support.dialogue import assistant, user
from tests.support.fold import fold, run
from tests.support.upstreams.tape import tape

# Messages --------------------------------------------------------------------------------------


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"role": "developer", "content": "x"}, {"role": "system", "content": "x"}),
        ({**user("x"), "name": "ann"}, {**user("x"), "name": "ann"}),
        (user([TEXT]), user("a")),
        (user([TEXT, {**TEXT, "text": "b"}]), user("a\nb")),
        (user([{**TEXT, "prompt_cache_breakpoint": {"mode": "explicit"}}]), user("a")),
        (user([TEXT, IMAGE]), user([TEXT, IMAGE])),
    ],
)
def test_messages_are_told_in_its_words(message: Json, sent: Json) -> None:
    assert written(messages=(message, *HELLO))[0]["messages"][0] == sent


def test_a_joined_message_is_named() -> None:
    _, notes = written(messages=(user([TEXT, TEXT]),))
    assert notes == [("parts_joined", "messages[0].content")]


def test_a_refusal_becomes_text() -> None:
    turn = {**assistant(), "refusal": "I will not"}
    body, notes = written(model=PLAIN, messages=(*HELLO, turn, user("please")))
    assert body["messages"][1] == assistant("I will not")
    assert notes == [("refusal_as_text", "messages[1].refusal")]


@pytest.mark.parametrize(
    ("part", "model"),
    [
        ({"type": "input_audio", "input_audio": {}}, THINKER),
        ({"type": "file", "file": {}}, THINKER),
        (IMAGE, "deepseek-v4-pro"),
    ],
)
def test_what_it_cannot_read_is_refused_where_it_stands(part: Json, model: str) -> None:
    messages = (*HELLO, user([TEXT, part]))
    assert refused(model=model, messages=messages) == "messages[1].content[1]"


def test_who_reads_images_is_for_the_config_to_say() -> None:
    messages = (user([IMAGE]),)
    assert written(Habits(vision=True), model=PLAIN, messages=messages)[0]["messages"] == [
        *messages
    ]
    assert refused(Habits(vision=False), messages=messages) == "messages[0].content[0]"


def test_an_image_in_a_result_is_refused() -> None:
    shown = {**ROUND[1], "content": [IMAGE]}
    assert refused(messages=(*HELLO, ROUND[0], shown)) == "messages[2].content[0]"


def test_only_the_beta_address_continues_an_answer() -> None:
    messages = (*HELLO, assistant("Once upon"))
    last = written(BETA, messages=messages)[0]["messages"][-1]
    assert (last["prefix"], last["content"]) == (True, "Once upon")


def test_a_last_message_of_the_assistant_is_answered_as_openai_does() -> None:
    body, notes = written(messages=(*HELLO, assistant("Once upon")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "prefix" not in body["messages"][1]
    assert body["messages"][2]["content"] == GO_ON
    assert notes == [("ending_added", "messages[1]")]


# Answers ---------------------------------------------------------------------------------------


def test_blank_lines_before_a_plain_answer_are_patience() -> None:
    answer = heard({"content": "", "reasoning_content": "hm"}, "length")
    assert (answer.reasoning, answer.reason, answer.error) == ("hm", "length", None)


def test_an_overloaded_answer_is_an_error() -> None:
    answer = heard({"content": ""}, "insufficient_system_resource")
    assert isinstance(answer.error, Unavailable)
    assert answer.error.status == 503


STREAM = (
    b": keep-alive\n\n",
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":""}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"hi","reasoning_content":null}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":'
    b'{"prompt_tokens":9,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5,'
    b'"completion_tokens_details":{"reasoning_tokens":2}}}\n\ndata: [DONE]\n\n',
)


def test_a_stream_of_thoughts_and_text() -> None:
    answer = run(fold(DeepSeek(tape(STREAM)).stream(request(call=RequestContext(streamed=True)))))
    assert (answer.reasoning, answer.text, answer.reason) == ("hm", "hi", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.cached, answer.usage.reasoning) == (9, 4, 2)


@pytest.mark.parametrize(("status", "code"), [(401, "upstream_auth"), (402, "upstream_billing")])
def test_a_failure_goes_by_its_status_not_by_its_misleading_code(status: int, code: str) -> None:
    body = {"error": {"message": "no", "type": "x", "param": None, "code": "invalid_request_error"}}
    error = from_status(status, {}, json.dumps(body).encode(), "deepseek", ())
    assert (type(error), error.code, error.again) == (Refused, code, "elsewhere")


# Where it goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "beta"),
    [
        ("https://api.deepseek.com", False),
        ("https://api.deepseek.com/v1", False),
        ("https://api.deepseek.com/beta", True),
        ("https://api.deepseek.com/beta/", True),
    ],
)
def test_beta_is_an_address_and_never_the_default(base_url: str, beta: bool) -> None:
    leaf = connect(settings(base_url))
    assert leaf.habits.beta == beta
    [planned] = leaf.plan(request())
    assert planned.url == base_url.rstrip("/") + "/chat/completions"


@pytest.mark.parametrize(
    ("thinking", "may"),
    [(None, True), ("always", True), (True, True), ("off", False), (False, False)],
)
def test_the_config_may_forbid_thinking(thinking: Any, may: bool) -> None:
    abilities = {} if thinking is None else {"thinking": thinking}
    assert connect(settings("http://up", abilities=abilities)).habits.may_think == may
