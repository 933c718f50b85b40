"""The chat on the terminal: its tools and what it shows."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.cli.chat.conversation import Dialogue
from middleware.cli.chat.screen import Screen
from middleware.cli.command import Failed
from tests.cli.chat.talking import TOOLS, Json, chunk

# Tools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 * (3 + 4)", "14"),
        ("2**100", str(2**100)),
        ("2^10", "1024"),
        ("7 // 2 - 7 % 2", "2"),
        ("-sqrt(2)", "-1.4142135623730951"),
        ("round(pi, 2)", "3.14"),
        ("10 / 4", "2.5"),
    ],
)
def test_the_calculator_calculates(expression: str, result: str) -> None:
    answer = TOOLS["calculate"].answer(json.dumps({"expression": expression}))
    assert json.loads(answer)["result"] == result


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9", "1/0", "sqrt(-1)", "(-8)**0.5", "1 +", "x", "'a' * 9", "True", "1j",
        "__import__('os').getcwd()", "(1).__class__", "[1][0]", "lambda: 1", "1 if 1 else 2",
        "abs(*[1])", "round(1, ndigits=2)", "1 < 2", "9" * 201, "(" * 150, "exp(1e9)", "1\x00",
        "(2**9999)*(2**9999)", " ",
    ],
)  # fmt: skip
def test_the_calculator_runs_nothing_and_says_why_not(expression: str) -> None:
    answer = json.loads(TOOLS["calculate"].answer(json.dumps({"expression": expression})))
    assert list(answer) == ["error"]


@given(st.text(alphabet="0123456789.+-*/%()e piabsqrt^_[]'\"", max_size=60))
def test_the_calculator_always_answers(expression: str) -> None:
    assert json.loads(TOOLS["calculate"].answer(json.dumps({"expression": expression})))


@pytest.mark.parametrize(
    ("zone", "time"),
    [(None, "2026-11-18T12:00:00+00:00"), ("Asia/Shanghai", "2026-11-18T20:00:00+08:00")],
)
def test_the_clock_tells_the_time_of_a_zone(zone: str | None, time: str) -> None:
    answer = TOOLS["get_time"].answer(json.dumps({"zone": zone} if zone else {}))
    assert json.loads(answer)["time"] == time


@pytest.mark.parametrize("zone", ["Mars/Crater", "../../etc/passwd", 7])
def test_the_clock_knows_zones_only(zone: object) -> None:
    assert "no time zone" in TOOLS["get_time"].answer(json.dumps({"zone": zone}))


def test_the_weather_says_that_it_is_made_up_and_stays_the_same() -> None:
    first, again = (TOOLS["get_weather"].answer('{"city": "沈阳"}') for _ in range(2))
    assert first == again
    assert json.loads(first)["note"] == "made-up example data"
    assert "沈阳" in first


@pytest.mark.parametrize(
    ("arguments", "told"),
    [("{", "no JSON"), ("[]", "JSON object"), ("", "'city' must be"), ('{"city": 1}', "'city'")],
)
def test_wrong_arguments_are_an_answer_the_model_can_use(arguments: str, told: str) -> None:
    assert told in json.loads(TOOLS["get_weather"].answer(arguments))["error"]


# A conversation --------------------------------------------------------------------------------


def call(index: int, arguments: str, name: str = "", id: str = "") -> Json:
    said: Json = {"arguments": arguments} | ({"name": name} if name else {})
    return chunk(tool_calls=[{"index": index, "function": said} | ({"id": id} if id else {})])


WEATHER = (
    {"warnings": "temperature_dropped: temperature: …"},
    chunk(role="assistant", content=""),
    chunk(reasoning_content="It asks for "),
    chunk(reasoning_content="two things."),
    chunk(content="Let me look."),
    call(0, "", "get_weather", "call_1"),
    call(0, '{"city": "Ro'),
    call(0, 'me"}'),
    call(1, '{"expression": "1+1"}', "calculate", "call_2"),
    chunk("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}},
)
DONE = (chunk(content="Warm, "), chunk(content="and 2."), chunk("stop"))


class Model:
    """Says one list of chunks after the other, and keeps what it was asked."""

    def __init__(self, *answers: Sequence[Json]) -> None:
        self.answers = list(answers)
        self.asked: list[Json] = []

    def __call__(self, body: Json) -> Generator[Json, None, None]:
        self.asked.append(json.loads(json.dumps(body)))
        yield from self.answers.pop(0)


def talk(*answers: Sequence[Json], colours: bool = False) -> tuple[Model, Dialogue, list[str]]:
    model, shown = Model(*answers), list[str]()
    screen = Screen(shown.append, colours)
    return model, Dialogue(model, "m", screen, tuple(TOOLS.values())), shown


def test_a_turn_shows_thoughts_text_calls_results_and_the_answer() -> None:
    _, conversation, shown = talk(WEATHER, DONE)
    conversation.say("Weather in Rome, and 1+1?")
    sky = json.loads(TOOLS["get_weather"].answer('{"city": "Rome"}'))
    assert "".join(shown).splitlines() == [
        "(changed on the way: temperature_dropped: temperature: …)",
        "(thinks) It asks for two things.",
        "Let me look.",
        "(5 tokens in, 7 out)",
        '→ get_weather {"city": "Rome"}',
        f"← {json.dumps(sky)}",
        '→ calculate {"expression": "1+1"}',
        '← {"expression": "1+1", "result": "2"}',
        "Warm, and 2.",
    ]


def test_thoughts_are_dim_on_a_terminal_that_can() -> None:
    _, conversation, shown = talk(WEATHER, DONE, colours=True)
    conversation.say("?")
    assert "\x1b[2mIt asks for \x1b[0m\x1b[2mtwo things.\x1b[0m\nLet me look.\n" in "".join(shown)


def test_calls_and_results_go_back_as_openai_wants_them() -> None:
    model, conversation, _ = talk(WEATHER, DONE, DONE)
    conversation.say("?")
    conversation.say("And now?")
    first, second, third = (body["messages"] for body in model.asked)
    assert first == [{"role": "user", "content": "?"}]
    assert [m["role"] for m in second] == ["user", "assistant", "tool", "tool"]
    assert second[1] == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}},
            {"id": "call_2", "type": "function",
             "function": {"name": "calculate", "arguments": '{"expression": "1+1"}'}},
        ],
    }  # fmt: skip
    assert [m["tool_call_id"] for m in second[2:]] == ["call_1", "call_2"]
    assert third[:4] == second
    assert third[4:] == [
        {"role": "assistant", "content": "Warm, and 2."},
        {"role": "user", "content": "And now?"},
    ]
    assert [tool["function"]["name"] for tool in model.asked[0]["tools"]] == list(TOOLS)


def test_a_turn_that_fails_was_never_said() -> None:
    broken = WEATHER[:6]
    model, conversation, _ = talk(DONE, WEATHER, broken, DONE)
    conversation.say("first")
    with pytest.raises(Failed, match="broke off"):
        conversation.say("second")
    conversation.say("third")
    said = [m["content"] for m in model.asked[-1]["messages"]]
    assert said == ["first", "Warm, and 2.", "third"]


def test_a_tool_nobody_has_is_told_to_the_model() -> None:
    model, conversation, _ = talk((call(0, "{}", "fly", "c"), chunk("tool_calls")), DONE)
    conversation.say("?")
    assert "no such tool" in model.asked[-1]["messages"][-1]["content"]


def test_a_model_that_never_stops_calling_is_stopped() -> None:
    again = (call(0, "{}", "get_time", "c"), chunk("tool_calls"))
    _, conversation, shown = talk(*[again] * 11)
    conversation.say("?")
    assert "".join(shown).endswith("(stopped after 10 rounds of tool calls)\n")


def test_an_answer_that_was_cut_says_so() -> None:
    _, conversation, shown = talk((chunk(content="a"), chunk("length")))
    conversation.say("?")
    assert "(ended: length)" in "".join(shown)
