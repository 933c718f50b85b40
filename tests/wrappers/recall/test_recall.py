"""What a client does not echo goes up again, and only where it belongs."""

from __future__ import annotations

import pytest

from adapters.protocol import (
    TURN,
    Finish,
    Json,
    ToolCallDelta,
    ToolCallStart,
)
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import OPENED, answer, assistant, request, result, user
from tests.support.fold import ask
from tests.wrappers.recall.turns import ASKED, BLOCKS, CALLED, after_call


def test_a_turn_of_its_own_shape_goes_up_again_as_it_was() -> None:
    model = after_call(assistant(None, CALLED), result("toolu_1", "5℃"))
    assert model.last()[1][TURN] == BLOCKS


def test_a_thought_goes_up_again_as_text() -> None:
    first = answer("need it", "Let me check.", said=[CALLED])
    model = after_call(assistant("", CALLED), result("toolu_1", "5℃"), first=first)
    turn = model.last()[1]
    assert turn["reasoning_content"] == "need it"
    assert turn["content"] == ""
    assert TURN not in turn


def test_a_turn_without_calls_is_found_by_its_text() -> None:
    model = FakeAdapter(answer("because", "Hello."), answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(user("hi")))
    ask(
        recall,
        request(user("hi"), assistant("<think>\nbecause\n</think>\n\nHello. "), user("more")),
    )
    assert model.last()[1] == {**assistant("Hello."), "reasoning_content": "because"}


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("why\nso\n</think>\n\n", "why\nso"),
        ("<think>\nwhy\n</think>\n\nLet me see.", "why"),
        ("The tag </think> ends it", ""),
        ("plain", ""),
    ],
)
def test_a_thought_that_was_left_out_of_the_text_goes_up_apart(text: str, thought: str) -> None:
    first = answer(text=text, said=[CALLED])
    turn = after_call(assistant("", CALLED), result("toolu_1", "5"), first=first).last()[1]
    assert turn.get("reasoning_content", "") == thought
    assert turn["content"] == ""
    turn = after_call(assistant(text, CALLED), result("toolu_1", "5"), first=first).last()[1]
    assert turn["content"] == text
    assert "reasoning_content" not in turn


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city":"沈阳"}',
        '{"city": "\\u6c88\\u9633"}',
        '{ "city" : "沈\\u9633" }',
    ],
)
def test_new_ids_and_other_escapes_change_nothing(arguments: str) -> None:
    sent = assistant("", ("call_new", "weather", arguments))
    model = after_call(sent, result("call_new", "5℃"))
    _, turn, answered = model.last()
    assert turn[TURN] == BLOCKS
    assert turn["tool_calls"] == assistant(None, CALLED)["tool_calls"]
    assert answered["tool_call_id"] == "toolu_1"


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ('{"a":1.0,"b":[2]}', '{"b": [2.0], "a": 1}'),
        ('{"a":9007199254740993}', '{"a":9007199254740992}'),
        ("{}", "{}"),
    ],
)
def test_arguments_are_compared_by_value(said: str, sent: str) -> None:
    first = answer("thought", said=[("id", "f", said)])
    model = after_call(assistant(None, ("x", "f", sent)), result("x", "1"), first=first)
    assert model.last()[1]["reasoning_content"] == "thought"
    assert model.last()[1]["tool_calls"][0]["function"]["arguments"] == said


def test_arguments_go_up_in_one_form_whether_found_or_lost() -> None:
    first = answer("thought", said=[("id", "f", '{"a": "\\u6c88"}')])
    model = after_call(assistant(None, ("id", "f", '{"a":"沈"}')), result("id", "1"), first=first)
    assert model.last()[1]["tool_calls"][0]["function"]["arguments"] == '{"a":"沈"}'


@pytest.mark.parametrize(
    "turn",
    [
        assistant(None, ("toolu_1", "weather", '{"city":"大连"}')),
        assistant(None, ("toolu_1", "time", '{"city":"沈阳"}')),
        assistant("I changed this.", CALLED),
    ],
)
def test_an_edited_turn_is_not_found(turn: Json) -> None:
    model = after_call(turn, result("toolu_1", "5℃"))
    assert model.last()[1] == turn


def test_behind_an_edited_turn_nothing_is_found() -> None:
    model = FakeAdapter(answer("one", "1"), answer("two", "2"), answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(user("a")))
    ask(recall, request(user("a"), assistant("1"), user("b")))
    ask(recall, request(user("a"), assistant("one"), user("b"), assistant("2"), user("c")))
    assert not any("reasoning_content" in message for message in model.last())


@pytest.mark.parametrize(("client", "model"), [("b", "m"), ("a", "n")])
def test_clients_and_models_do_not_meet(client: str, model: str) -> None:
    turn = assistant(None, CALLED)
    scripted = after_call(turn, result("toolu_1", "5℃"), client=client, model=model)
    assert scripted.last()[1] == turn


def test_scopes_do_not_meet() -> None:
    store, first, second = (
        MemoryStore(),
        FakeAdapter(answer("t", said=[CALLED])),
        FakeAdapter(answer()),
    )
    ask(Recall(first, store, "one"), request(ASKED))
    turn = assistant(None, CALLED)
    ask(Recall(second, store, "two"), request(ASKED, turn, result("toolu_1", "5")))
    assert second.last()[1] == turn


def test_an_echo_of_the_client_wins() -> None:
    turn = assistant(None, CALLED)
    model = after_call({**turn, "reasoning_content": "mine"}, result("toolu_1", "5℃"))
    assert model.last()[1]["reasoning_content"] == "mine"
    blocks = [{"type": "thinking", "thinking": "x", "signature": "y"}]
    model = after_call({**turn, "thinking_blocks": blocks}, result("toolu_1", "5℃"))
    assert model.last()[1]["thinking_blocks"] == blocks
    assert TURN not in model.last()[1]


def test_a_client_cannot_put_words_into_the_upstreams_mouth() -> None:
    turn = assistant("hello") | {TURN: BLOCKS}
    model = FakeAdapter(answer())
    ask(Recall(model, MemoryStore()), request(ASKED, turn, user("b")))
    assert TURN not in model.last()[1]


def test_a_turn_that_was_cut_is_not_given_back() -> None:
    model = FakeAdapter([OPENED, Finish("length", turn=BLOCKS)], answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, assistant("x"), user("go on")))
    assert TURN not in model.last()[1]


def test_a_custom_call_is_found_again() -> None:
    start, piece = ToolCallStart(0, "up", "shell", "custom"), ToolCallDelta(0, "ls -l")
    call = {"id": "x", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    first = [*answer("t")[:-1], start, piece, Finish("tool_calls")]
    model = after_call(turn, result("x", "."), first=first)
    assert model.last()[1]["tool_calls"] == [{**call, "id": "up"}]
    assert model.last()[1]["reasoning_content"] == "t"


def test_results_in_another_order_stay_with_their_calls() -> None:
    calls = (CALLED, ("toolu_2", "clock", "{}"))
    sent = assistant("", ("a", CALLED[1], CALLED[2]), ("b", "clock", "{}"))
    first = answer("need both", said=[*calls])
    model = after_call(sent, result("b", "08:30"), result("a", "5℃"), first=first)
    answered = {said["tool_call_id"]: said["content"] for said in model.last()[2:]}
    assert answered == {"toolu_1": "5℃", "toolu_2": "08:30"}
