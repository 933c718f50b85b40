"""Attachments, calls, results and thoughts in a conversation with Claude."""

from __future__ import annotations

import base64
import copy
import re
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import RESULT_OF, TURN, Json
from tests.adapters.claude.conversations import (
    DALIAN,
    SHENYANG,
    SIGNED,
    assert_accepted,
    codes,
    refusal,
    said,
)
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    ALWAYS,
    WEATHER,
    begin,
    call,
    claude,
    end,
    hear,
    request,
    sent,
    sse,
    text,
    thought,
    turns,
)

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


# Attachments ------------------------------------------------------------------------------------


def image(url: str, detail: str | None = None) -> Json:
    said = {"url": url, "detail": detail} if detail else {"url": url}
    return {"type": "image_url", "image_url": said}


def test_images_go_up_as_data_or_address() -> None:
    blocks = turns(user([said("a"), image(PNG), image("https://x.example/y.jpg")]))[0]["content"]
    data = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert [block.get("source") for block in blocks] == [
        None,
        data,
        {"type": "url", "url": "https://x.example/y.jpg"},
    ]


def test_jpg_is_jpeg() -> None:
    (block,) = turns(user([image("data:image/jpg;base64,AA==")]))[0]["content"]
    assert block["source"]["media_type"] == "image/jpeg"


def test_detail_is_lost_by_name_unless_it_is_automatic() -> None:
    assert codes(user([image(PNG, "auto")])) == []
    assert codes(user([image(PNG, "high")])) == ["image_detail_dropped"]


@pytest.mark.parametrize(
    ("part", "param"),
    [
        (image("data:image/bmp;base64,AA=="), "image_url.url"),
        (image("data:video/mp4;base64,AA=="), "image_url.url"),
        (image("data:image/png,raw"), "image_url.url"),
        (image("file:///etc/passwd"), "image_url.url"),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, ""),
        ({"type": "file", "file": {"file_id": "file-1"}}, "file.file_id"),
        ({"type": "file", "file": {}}, "file"),
        ({"type": "file", "file": {"file_data": "data:x/y;base64,AA=="}}, "file.file_data"),
        ({"type": "file", "file": {"file_data": "data:text/a;base64,/w=="}}, "file.file_data"),
        ({"type": "file", "file": {"file_data": "AAAA", "filename": 5}}, "file.file_data"),
    ],
)
def test_attachment_claude_cannot_read_is_refused_at_its_place(part: Json, param: str) -> None:
    error = refusal(user([said("a"), part]))
    assert error.param == f"messages[0].content[1].{param}".rstrip(".")
    assert error.status == 400


def test_unknown_members_of_a_result_are_named_beside_its_images() -> None:
    calls = assistant(None, ("a", "look", "{}"))
    parts = [{**said("a"), "odd": 1}, image(PNG)]
    asked = [user("hi"), calls, {**result("a", "5"), "content": parts, RESULT_OF: "look"}]
    _, receipt = sent(request(*asked), claude(able_vision=False))
    assert receipt == ["image_dropped", "member_dropped"]


def test_image_for_a_model_without_eyes_is_refused() -> None:
    with pytest.raises(BadRequest, match="does not read images"):
        sent(request(user([image(PNG)])), claude(able_vision=False))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            {"file_data": PDF, "filename": "a.pdf"},
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        ),
        (
            {"file_data": "JVBERi0=", "filename": "a.PDF"},
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        ),
        (
            {
                "file_data": "data:text/markdown;base64,"
                + base64.b64encode("# 好".encode()).decode()
            },
            {"type": "text", "media_type": "text/plain", "data": "# 好"},
        ),
    ],
)
def test_files_are_documents(file: Json, source: Json) -> None:
    (block,) = turns(user([{"type": "file", "file": file}]))[0]["content"]
    assert (block["type"], block["source"]) == ("document", source)
    assert block.get("title") == file.get("filename")


# Calls and results ------------------------------------------------------------------------------


def test_results_stand_right_behind_their_calls_and_before_everything_else() -> None:
    messages = (
        user("weather?"),
        assistant("Looking.", SHENYANG, DALIAN),
        result("b", "雪"),
        user("quick!"),
        result("a", "晴"),
    )
    body, notes = sent(request(*messages, tools=[WEATHER]))
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                said("Looking."),
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "沈阳"}},
                {"type": "tool_use", "id": "b", "name": "get_weather", "input": {"city": "大连"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "雪"},
                {"type": "tool_result", "tool_use_id": "a", "content": "晴"},
                said("quick!"),
            ],
        },
    ]
    assert notes == []


def one_result(message: Json, **options: Any) -> Json:
    asked = request(user("x"), assistant(None, SHENYANG), message, tools=[WEATHER])
    body, _ = sent(asked, claude(**options))
    block: Json = body["messages"][2]["content"][0]
    assert (block.pop("type"), block.pop("tool_use_id")) == ("tool_result", "a")
    return block


@pytest.mark.parametrize(
    ("content", "block"),
    [
        ("5 °C", {"content": "5 °C"}),
        ("", {}),
        (" \n", {}),
        ([], {}),
        ([said("")], {}),
        ([said("a"), said("b")], {"content": [said("a"), said("b")]}),
    ],
)
def test_result(content: Any, block: Json) -> None:
    assert one_result({**result("a", ""), "content": content}) == block


def test_result_with_an_image_shows_it() -> None:
    block = one_result({**result("a", ""), "content": [said("a"), image(PNG)]})
    assert [part["type"] for part in block["content"]] == ["text", "image"]


def test_failed_tool_is_told_as_such() -> None:
    assert one_result({**result("a", "no"), "is_error": True})["is_error"] is True
    assert "is_error" not in one_result(result("a", '{"error": "x"}'))
    assert one_result(result("a", '{"error": "x"}'), error_results=True)["is_error"] is True
    assert "is_error" not in one_result(result("a", '"error"'), error_results=True)


@pytest.mark.parametrize(
    ("arguments", "sent_as", "notes"),
    [
        ('{"n": 1.0, "big": 12345678901234567890123, "z": 1e2}', None, []),
        ("", "{}", []),
        ("[1, 2]", '{"_raw":"[1,2]"}', ["arguments_wrapped"]),
        ('{"half', '{"_raw":"{\\"half"}', ["arguments_wrapped"]),
    ],
)
def test_arguments_go_up_as_an_object_in_their_own_digits(
    arguments: str, sent_as: str | None, notes: list[str]
) -> None:
    asked = request(user("x"), assistant(None, ("a", "f", arguments)), result("a", "ok"))
    (planned,) = claude().plan(asked)
    body = orjson.dumps(planned.body).decode()
    assert f'"input":{sent_as or arguments.replace(" ", "")}' in body
    assert [note.code for note in planned.receipt] == notes


def test_custom_calls_are_wrapped_as_they_were_declared() -> None:
    sql = {"id": "a", "type": "custom", "custom": {"name": "run_sql", "input": 'SELECT "1"'}}
    messages = (user("x"), {"role": "assistant", "tool_calls": [sql]}, result("a", "1"))
    block = turns(*messages)[1]["content"][0]
    assert (block["name"], block["input"]) == ("run_sql", {"input": 'SELECT "1"'})


def ids(*messages: Json) -> list[str]:
    body, _ = sent(request(*messages, tools=[WEATHER]))
    assert_accepted(body)
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def test_ids_claude_takes_are_kept_and_others_get_one_of_their_own() -> None:
    odd = ["c:1", "c|1", "好", "a b", "é"]
    calls = [(identity, "f", "{}") for identity in ["toolu_01-A", *odd]]
    found = ids(user("x"), assistant(None, *calls), *(result(one, "") for one, *_ in calls))
    assert found[0] == "toolu_01-A"
    assert len(set(found)) == len(calls)
    assert all(re.fullmatch(r"call_[a-z2-7]{24}", one) for one in found[1:])


def test_id_used_again_later_gets_another_and_so_does_its_result() -> None:
    one = (assistant(None, ("1", "f", "{}")), result("1", "ok"))
    first, second = ids(user("x"), *one, user("y"), *one)
    assert first == "1"
    assert second != "1"
    assert ids(user("x"), *one, user("y"), *one, user("z"), *one)[:2] == [first, second]


# Thoughts ---------------------------------------------------------------------------------------


REDACTED: Json = {"type": "redacted_thinking", "data": "d"}


def test_echoed_thoughts_go_back_as_they_came_and_first() -> None:
    turn = {**assistant("t", SHENYANG), "thinking_blocks": [SIGNED, REDACTED]}
    body, notes = sent(request(user("x"), turn, result("a", "5"), tools=[WEATHER]))
    blocks = body["messages"][1]["content"]
    assert blocks[:2] == [SIGNED, REDACTED]
    assert [block["type"] for block in blocks[2:]] == ["text", "tool_use"]
    assert notes == []


@pytest.mark.parametrize(
    ("echoed", "notes"),
    [
        ({"thinking_blocks": [{"type": "thinking", "thinking": "x"}]}, ["thinking_unsigned"]),
        ({"thinking_blocks": [{"type": "tool_use", "id": "x"}]}, ["thinking_unsigned"]),
        ({"thinking_blocks": "hm"}, []),
        ({"thinking_blocks": [5]}, []),
        ({"reasoning_content": "hm"}, ["reasoning_dropped"]),
        ({"reasoning_content": "hm", "thinking_blocks": [SIGNED]}, []),
    ],
)
def test_thoughts_without_a_signature_stay_behind_by_name(echoed: Json, notes: list[str]) -> None:
    messages = (user("x"), {**assistant("t"), **echoed}, user("y"))
    assert codes(*messages) == notes


def test_turn_that_was_only_a_thought_is_dropped_by_name() -> None:
    messages = (user("x"), {"role": "assistant", "reasoning_content": "hm"}, user("y"))
    assert codes(*messages) == ["reasoning_dropped", "empty_turn_dropped"]
    assert len(turns(*messages)) == 1


def test_claudes_own_turn_goes_back_as_it_came_with_the_results_behind_its_ids() -> None:
    answer = hear(
        sse(
            begin(),
            *thought(0, "hm", signature="one"),
            *call(1, "toolu_1", "get_weather", '{"city":"沈阳"}'),
            *thought(2, signature="two"),
            *call(3, "toolu_2", "get_weather", '{"city":"大连"}'),
            *text(4, "so"),
            *end("tool_use"),
        )
    )
    assert answer.turn is not None
    turn = {**assistant(None, SHENYANG, DALIAN), TURN: answer.turn}
    messages = (user("x"), turn, result("a", "晴"), result("b", "雪"))
    before = copy.deepcopy(messages)
    body, notes = sent(request(*messages, tools=[WEATHER]))
    assert body["messages"][1] == answer.turn
    answered = [block["tool_use_id"] for block in body["messages"][2]["content"]]
    assert answered == ["toolu_1", "toolu_2"]
    assert notes == []
    assert messages == before


@pytest.mark.parametrize(
    "turn",
    [
        "text",
        {"content": "text"},
        {"content": [5]},
        {"content": [{"type": "tool_use"}]},
        {"content": []},
        {"content": [{"type": "tool_use", "id": "x"}, {"type": "tool_use", "id": "y"}]},
    ],
)
def test_turn_that_does_not_fit_its_calls_is_not_believed(turn: Any) -> None:
    messages = (user("x"), {**assistant("t", SHENYANG), TURN: turn}, result("a", "5"))
    body, _ = sent(request(*messages, tools=[WEATHER]))
    assert_accepted(body)
    assert body["messages"][1]["content"][0] == said("t")


def test_turn_claude_paused_can_be_gone_on_with_even_without_prefill() -> None:
    searched = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    paused = {"role": "assistant", "content": [said("a"), searched]}
    messages = (user("x"), {**assistant("a"), TURN: paused})
    assert turns(*messages, model=ALWAYS)[-1] == paused
