"""A conversation as Claude takes it: paired, merged, append-only, nothing lost without a word."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import TURN, Json
from adapters.shared.history import GO_ON
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    ALWAYS,
    HELLO,
    MANUAL,
    UNASKED,
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
SHENYANG, DALIAN = ("a", "get_weather", '{"city":"沈阳"}'), ("b", "get_weather", '{"city":"大连"}')


def system(content: Any, role: str = "system") -> Json:
    return {"role": role, "content": content}


def said(content: str) -> Json:
    return {"type": "text", "text": content}


def codes(*messages: Json, **asked: Any) -> list[str]:
    return sent(request(*messages, **asked))[1]


def refusal(*messages: Json, **asked: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        sent(request(*messages, **asked))
    return caught.value


def assert_accepted(body: Json) -> None:
    """What Claude checks of a conversation."""
    waiting: list[str] = []
    used: set[str] = set()
    for position, turn in enumerate(body["messages"]):
        kinds = [block["type"] for block in turn["content"]]
        assert kinds, "all messages must have non-empty content"
        assert position == 0 or turn["role"] != body["messages"][position - 1]["role"]
        results = [b["tool_use_id"] for b in turn["content"] if b["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting), "each tool_use must have a single result"
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        assert not used & set(waiting), "ids must be unique"
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in waiting)
        used |= set(waiting)
        texts = [block["text"] for block in turn["content"] if block["type"] == "text"]
        assert all(one.strip() for one in texts), "text must be visible"
        inputs = [block["input"] for block in turn["content"] if block["type"] == "tool_use"]
        assert all(isinstance(one, dict) for one in inputs)
    assert not waiting
    assert not used or body["tools"]


# System -----------------------------------------------------------------------------------------


def test_leading_system_and_developer_messages_keep_their_order_and_parts() -> None:
    parts = [said("b"), said(""), said("c")]
    body, notes = sent(request(system("a"), system(parts, "developer"), HELLO))
    assert body["system"] == [said("a"), said("b"), said("c")]
    assert body["messages"] == [{"role": "user", "content": [said("hello")]}]
    assert notes == []


def test_later_system_message_is_a_note_of_the_user_where_the_model_has_no_other_way() -> None:
    messages = (user("a"), assistant("b"), system("be brief"), user("c"))
    last = turns(*messages)[-1]
    assert last == {"role": "user", "content": [said("[system note] be brief"), said("c")]}
    assert codes(*messages) == ["system_as_user_text"]


def test_later_system_message_stands_behind_the_users_turn_where_the_model_takes_it() -> None:
    messages = (user("a"), assistant("b"), system("be brief"), user("c"))
    roles = [(turn["role"], turn["content"]) for turn in turns(*messages, model=UNASKED)]
    assert roles[2:] == [("user", [said("c")]), ("system", [said("be brief")])]
    assert codes(*messages, model=UNASKED) == ["system_moved"]
    assert codes(user("a"), system("x"), assistant("b"), user("c"), model=UNASKED) == []


def test_later_system_message_never_parts_a_call_from_its_result() -> None:
    messages = (user("a"), assistant(None, SHENYANG), system("quick"), result("a", "5"), user("c"))
    for model in (MANUAL, UNASKED):
        body, _ = sent(request(*messages, model=model, tools=[WEATHER]))
        assert_accepted(body)


def test_system_alone_is_refused() -> None:
    error = refusal(system("a"))
    assert "user message" in error.message
    assert error.param == "messages"


# Turns ------------------------------------------------------------------------------------------


def test_consecutive_turns_of_one_role_are_one() -> None:
    messages = (user("a"), user([said("b"), said("c")]), assistant("d"), assistant("e"), user("f"))
    assert turns(*messages) == [
        {"role": "user", "content": [said("a"), said("b"), said("c")]},
        {"role": "assistant", "content": [said("d"), said("e")]},
        {"role": "user", "content": [said("f")]},
    ]


def test_conversation_the_assistant_begins_is_left_as_it_is_for_claude() -> None:
    messages = (assistant("Hi!"), user("a"))
    assert [turn["role"] for turn in turns(*messages)] == ["assistant", "user"]
    assert codes(*messages) == []


def test_conversation_the_assistant_begins_gets_a_beginning_for_other_servers() -> None:
    messages = (assistant("Hi!"), user("a"))
    first = turns(*messages, model="kimi-k2")[0]
    assert first == {"role": "user", "content": [said("(conversation start)")]}
    assert codes(*messages, model="kimi-k2") == ["beginning_added"]


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_text_nobody_can_see_is_left_out_by_name(blank: str) -> None:
    messages = (user("a"), assistant("b"), user([said(blank), said("c")]))
    assert turns(*messages)[-1]["content"] == [said("c")]
    assert codes(*messages) == ["empty_text_dropped"]
    assert len(turns(user(blank), assistant("b"), user("c"))) == 2


@pytest.mark.parametrize("messages", [[user("")], [user("a"), assistant("b"), user(" ")]])
def test_last_turn_of_nothing_is_refused(messages: list[Json]) -> None:
    error = refusal(*messages)
    assert error.param == f"messages[{len(messages) - 1}].content"


def test_assistants_empty_text_beside_calls_is_no_loss_worth_a_word() -> None:
    contents: list[Any] = [None, "", []]
    for content in contents:
        turn = {**assistant(None, SHENYANG), "content": content}
        body, notes = sent(request(user("a"), turn, result("a", "5"), tools=[WEATHER]))
        assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
        assert notes == []


def test_prefill_is_stripped_where_the_model_goes_on_with_it() -> None:
    assert turns(user("a"), assistant("{ \n"))[-1]["content"] == [said("{")]


GONE_ON = [
    {"role": "assistant", "content": [said("b")]},
    {"role": "user", "content": [said(GO_ON)]},
]


def test_a_last_message_of_the_assistant_is_answered_where_the_model_does_not_go_on() -> None:
    messages = (user("a"), assistant("b"))
    assert turns(*messages, model=ALWAYS)[1:] == GONE_ON
    assert codes(*messages, model=ALWAYS) == ["ending_added"]


def test_a_schema_is_not_answered_by_going_on() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = request(user("a"), assistant("b"), response_format=form)
    body, notes = sent(asked)
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert body["messages"][1:] == GONE_ON
    assert notes == ["ending_added"]


def test_what_was_answered_behind_the_assistant_stands_there_in_later_turns_too() -> None:
    own = {"role": "assistant", "content": [said("c")]}
    asked = (user("a"), assistant("b"))
    later = (*asked, {**assistant("c"), TURN: own}, user("d"))
    before = turns(*asked, model=ALWAYS)
    assert turns(*later, model=ALWAYS) == [*before, own, {"role": "user", "content": [said("d")]}]


def test_names_stand_before_the_text() -> None:
    messages = ({**user([said("a"), said("b")]), "name": "Li"}, {**assistant("c"), "name": "x"})
    asked = (*messages, user("d"))
    assert turns(*asked)[0]["content"] == [said("Li:\na"), said("b")]
    assert codes(*asked) == ["name_as_prefix", "name_dropped"]


def test_a_name_that_repeats_the_role_is_not_said() -> None:
    asked = ({**user("a"), "name": "User"},)
    assert turns(*asked)[0]["content"] == [said("a")]
    assert codes(*asked) == ["name_dropped"]


def test_refusals_of_the_past_are_text() -> None:
    parts = [said("a"), {"type": "refusal", "refusal": "b"}]
    messages = (user("x"), {"role": "assistant", "content": parts, "refusal": "c"}, user("y"))
    assert turns(*messages)[1]["content"] == [said("a"), said("b"), said("c")]
    assert codes(*messages) == ["refusal_as_text", "refusal_as_text"]


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

SIGNED: Json = {"type": "thinking", "thinking": "hm", "signature": "s"}
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


# Cache ------------------------------------------------------------------------------------------


def marked(content: str, **said: Any) -> Json:
    return {
        "type": "text",
        "text": content,
        "prompt_cache_breakpoint": {"mode": "explicit", **said},
    }


@pytest.mark.parametrize(
    ("asked", "options", "control", "notes"),
    [
        ({}, None, {"type": "ephemeral"}, []),
        ({"ttl": "30m"}, None, {"type": "ephemeral", "ttl": "1h"}, []),
        ({"ttl": "12h"}, None, {"type": "ephemeral", "ttl": "1h"}, ["cache_lifetime_shortened"]),
        ({}, {"ttl": "30m"}, {"type": "ephemeral", "ttl": "1h"}, []),
        ({}, {"mode": "implicit"}, {"type": "ephemeral"}, ["parameter_dropped"]),
    ],
)
def test_cache_breakpoint(asked: Json, options: Any, control: Json, notes: list[str]) -> None:
    body, found = sent(request(user([marked("a", **asked)]), prompt_cache_options=options))
    assert body["messages"][0]["content"][0]["cache_control"] == control
    assert found == notes


@pytest.mark.parametrize("options", [{"ttl": "30m"}, {"mode": "implicit"}, {"scope": "x"}])
def test_cache_options_that_nothing_is_cached_by_are_named(options: Json) -> None:
    _, found = sent(request(user("a"), prompt_cache_options=options))
    assert found == ["parameter_dropped"]


@pytest.mark.parametrize("ttl", ["7d", 5, [1], {"a": 1}])
def test_a_lifetime_claude_does_not_know_is_its_shortest_and_named(ttl: Any) -> None:
    body, found = sent(request(user([marked("a", ttl=ttl)])))
    control = body["messages"][0]["content"][0]["cache_control"]
    assert (control["ttl"], found) == ("5m", ["cache_lifetime_unknown"])


def test_breakpoints_stand_wherever_parts_stand() -> None:
    own = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
    messages = (
        system([marked("a")]),
        user([own]),
        assistant(None, SHENYANG),
        {**result("a", ""), "content": [marked("5")]},
    )
    body, _ = sent(request(*messages, tools=[WEATHER]))
    assert "cache_control" in body["system"][0]
    assert body["messages"][0]["content"] == [own]
    (answered,) = body["messages"][2]["content"]
    assert answered["cache_control"] == {"type": "ephemeral"}
    assert answered["content"] == [said("5")]


MARK: Json = {"cache_control": {"type": "ephemeral"}}


def test_a_breakpoint_of_a_message_is_its_last_blocks() -> None:
    messages = (
        {**system([said("a"), said("b")]), **MARK},
        {**user([said("c"), said("d")]), **MARK},
        {**assistant("e", SHENYANG), **MARK},
        {**result("a", "5"), **MARK},
    )
    before = copy.deepcopy(messages)
    body, notes = sent(request(*messages, tools=[WEATHER]))
    assert [("cache_control" in block) for block in body["system"]] == [False, True]
    turns = [["cache_control" in block for block in turn["content"]] for turn in body["messages"]]
    assert turns == [[False, True], [False, True], [True]]
    assert (notes, messages) == ([], before)


def test_a_parts_own_breakpoint_counts_before_the_messages() -> None:
    own = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body, _ = sent(request({**user([own]), **MARK}))
    assert body["messages"][0]["content"] == [own]


@pytest.mark.parametrize(
    "message", [{**system(" "), **MARK}, {**user("a"), "cache_control": "ephemeral"}]
)
def test_a_breakpoint_that_has_no_place_is_named(message: Json) -> None:
    body, notes = sent(request(message, user("b")))
    assert "cache_control" not in orjson.dumps(body).decode()
    assert {"cache_breakpoints_dropped", "member_dropped"} & set(notes)


@pytest.mark.parametrize("inside", [True, False])
def test_a_breakpoint_of_a_tool_is_carried(inside: bool) -> None:
    function = {**WEATHER["function"], **(MARK if inside else {})}
    marked_tool = {**WEATHER, "function": function, **({} if inside else MARK)}
    for _ in range(2):  # tools are remembered, their breakpoints are not
        body, notes = sent(request(user("a"), tools=[marked_tool]))
        assert (body["tools"][0]["cache_control"], notes) == (MARK["cache_control"], [])
        body, _ = sent(request(user("a"), tools=[WEATHER]))
        assert "cache_control" not in body["tools"][0]


def test_what_stands_beside_a_function_is_named() -> None:
    _, notes = sent(request(user("a"), tools=[{**WEATHER, "defer_loading": True}]))
    assert notes == ["member_dropped"]


@pytest.mark.parametrize(
    ("tools", "before", "inside", "kept"),
    [
        (1, 1, 2, "t s 01"),
        (1, 1, 3, "s 012"),
        (1, 0, 5, "t 234"),
        (0, 2, 5, "s 234"),
        (0, 0, 5, "1234"),
        (1, 3, 0, "t s s s"),
        (1, 4, 0, "s s s s"),
    ],
)
def test_four_breakpoints_are_kept_the_last_before_the_conversation_and_the_last_in_it(
    tools: int, before: int, inside: int, kept: str
) -> None:
    messages = (
        system([marked("s") for _ in range(before)] or "s"),
        user([marked(str(n)) for n in range(inside)] or "u"),
    )
    copied = copy.deepcopy(messages)
    body, notes = sent(request(*messages, tools=[{**WEATHER, **(MARK if tools else {})}]))
    blocks = [{**body["tools"][0], "text": "t "}, *body["system"], *body["messages"][0]["content"]]
    texts = [block["text"] for block in blocks if "cache_control" in block]
    assert "".join(texts).replace(" ", "") == kept.replace(" ", "")
    assert notes == ["cache_breakpoints_dropped"] * (tools + before + inside > 4)
    assert messages == copied


def test_automatic_caching_takes_one_of_the_four() -> None:
    asked = request(user([marked(str(n)) for n in range(4)]), extra=MARK)
    body, _ = sent(asked)
    marks = ["cache_control" in block for block in body["messages"][0]["content"]]
    assert marks == [False, True, True, True]


# Properties -------------------------------------------------------------------------------------

_text = st.sampled_from(["", " ", "a", "好", "b\n", "[system note] x"])
_identity = st.sampled_from(["1", "c:1", "c|1", "toolu_9", "好"])
_arguments = st.sampled_from(["", "{}", '{"a": 1.0}', "[]", '{"half'])


@st.composite
def _round(draw: st.DrawFn) -> list[Json]:
    calls = draw(st.lists(st.tuples(_identity, st.just("f"), _arguments), max_size=3))
    calls = list({one[0]: one for one in calls}.values())
    answered = draw(st.permutations([one[0] for one in calls]))
    message = assistant(draw(_text), *calls)
    if draw(st.booleans()):
        message["thinking_blocks"] = [SIGNED]
    return [message, *(result(one, draw(_text)) for one in answered)]


_alone = st.one_of(_text.map(user), _text.map(system), _text.map(lambda one: [said(one)]).map(user))
_message = st.one_of(_alone.map(lambda one: [one]), _round())
_conversations = st.lists(_message, max_size=6).map(lambda found: [HELLO, *chain(*found)])
_models = st.sampled_from([MANUAL, "claude-opus-4-6", UNASKED, ALWAYS, "kimi-k2"])


def _rounds(messages: Sequence[Json]) -> list[Json]:
    return [*messages, user("and now?")]


@given(_conversations, _models)
def test_claude_accepts_every_settled_conversation(messages: list[Json], model: str) -> None:
    asked = request(*_rounds(messages), model=model)
    before = orjson.dumps(asked.messages)
    body, _ = sent(asked)
    assert_accepted(body)
    assert orjson.dumps(asked.messages) == before
    assert sent(asked)[0] == body


@given(_conversations, _conversations, _models)
def test_longer_conversation_begins_with_the_same_bytes(
    first: list[Json], more: list[Json], model: str
) -> None:
    shorter = sent(request(*_rounds(first), model=model))[0]["messages"]
    longer = sent(request(*_rounds(first), assistant("so"), *_rounds(more), model=model))[0]
    assert longer["messages"][: len(shorter)] == shorter
