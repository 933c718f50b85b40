"""What a call means: which tool; what cannot be meant is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from adapters.protocol import ToolCallStart
from adapters.shared.calls import Calls
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.judge.names import Names
from middleware.wrappers.emulation.read.reader import Reader
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.support.text_only import Say, TextOnly, asked, heard, tool
from tests.wrappers.emulation.read.naming import block

# Another tool: by a word, a verb, a prefix, a number, a version, a letter, a sign.
OTHERS = [
    ("lock_door", "unlock_door"),
    ("subscribe", "unsubscribe"),
    ("install_app", "uninstall_app"),
    ("install_app", "reinstall_app"),
    ("freeze_account", "unfreeze_account"),
    ("get_user", "set_user"),
    ("get_item_v1", "get_item_v2"),
    ("get_item_v12", "get_item_v21"),
    ("get_item_v1", "get_item_v11"),
    ("get_item_v12", "get_item_v1_2"),
    ("enable_alarm", "disable_alarm"),
    ("activate_card", "deactivate_card"),
    ("get_weather", "get_wether"),
    ("get_address", "get_adress"),
    ("get_weather", "get_weathers"),
    ("lock_door", "disable lock_door"),
    ("lock_door", "lock_door unlock"),
    ("lock_door", "lock_door/unlock"),
    ("lock_door", "!lock_door"),
    ("lock_door", "not lock_door"),
    ("lock", "lock door"),
    ("phone", "phone.call"),
    ("打开空调", "关闭空调"),
    ("开关", "关开"),
    ("कि_लिखो", "का_लिखो"),
]
SAME = ["getWeather", "GET-WEATHER", "get weather", "get.weather", "get_weatehr", "get_weatther"]
MARKED = ["`get_weather`", "**get_weather**", '"get_weather"', "get_weather()", "[get_weather]",
          "functions.get_weather", "default_api.get_weather", "tool:get_weather", "get_weather # x",
          "get_weather (the tool)"]  # fmt: skip


# A call of a tool, in what may stand for each way a name is looked up.
WAYS = [
    block("{0}", "{1}"),
    "USE_TOOL {0} {1}",
    "USE_TOOL: {0}({1})",
    "USE_TOOL\n{0}\n{1}",
    'USE_TOOL\n{{"name": "{0}", "arguments": {1}}}',
    '{{"name": "{0}", "arguments": {1}}}',
    '[{{"name": "{0}", "arguments": {1}}}]',
    '```json\n{{"tool": "{0}", "args": {1}}}\n```',
    '{{"function": {{"name": "{0}", "arguments": {1}}}}}',
    '{{"function": {{"name": "{0}", "kwargs": {1}}}}}',
    '<tool_call>{{"name": "{0}", "arguments": {1}}}</tool_call>',
    "<tool_call>{0}\n<arg_key>id</arg_key><arg_value>7</arg_value></tool_call>",
    "<function={0}>{1}</function>",
    "<function={0}><parameter=id>7</parameter></function>",
    '<invoke name="{0}"><parameter name="id">7</parameter></invoke>',
    "[TOOL_CALLS]{0}[ARGS]{1}",
    '[TOOL_CALLS][{{"name": "{0}", "arguments": {1}}}]',
    "<|tool_call_begin|>functions.{0}:0<|tool_call_argument_begin|>{1}<|tool_call_end|>",
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{0}\n```json\n{1}\n```<｜tool▁call▁end｜>",
    "<|channel|>commentary to=functions.{0} <|message|>{1}<|call|>",
    "<|tool_call>call:{0}{{id:7}}<tool_call|>",
    '<|open|>call tool="{0}"<|sep|><|close|>call<|sep|>',
    "<|tool_call:start|>{0}\n<|tool_arg:start|>id<|tool_arg:value|>7<|tool_arg:end|><|tool_call:end|>",
    "<|tool_call_start|>[{0}(id=7)]<|tool_call_end|>",
    "<|python_tag|>{0}.call(id=7)",
    "Action: {0}\nAction Input: {1}",
    ">>>{0}\n{1}",
    "{0}(id=7)",
    "[{0}(id=7)]",
    'functools[{{"name": "{0}", "arguments": {1}}}]',
]


def names_of(calls: Sequence[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in calls]


def read_names(text: str, declared: Sequence[str], how: ReadRules | None = None) -> list[str]:
    tools = [Tool(name, "", {"type": "object", "properties": {"id": {}}}) for name in declared]
    reader = Reader(tools, Calls("r"), how)
    events = [*reader.feed(text), *reader.close()]
    return [event.name for event in events if isinstance(event, ToolCallStart)]


@pytest.mark.parametrize(("declared", "called"), OTHERS)
def test_a_name_that_differs_is_another_tool_and_never_called(declared: str, called: str) -> None:
    assert Names([declared]).find(called) is None
    for way in WAYS:
        if " " in called and " to=" in way:
            continue  # in Harmony a blank ends the name
        text = way.format(called, '{"id": 7}')
        for how in (
            ReadRules(),
            ReadRules(forced=True),
            ReadRules(prose=False, thoughts=False, hold=0),
        ):
            assert read_names(text, [declared], how) == [], (text, how)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_name_is_called_however_it_is_written(way: str) -> None:
    assert read_names(way.format("get_weather", '{"id": 7}'), ["get_weather"]) == ["get_weather"]


@pytest.mark.parametrize("called", SAME)
def test_the_same_word_is_the_tool_and_the_receipt_says_so(called: str) -> None:
    for adapter in (EmulatedTools, LeakRescue):
        answer = heard(adapter(TextOnly([Say(block(called, '{"city": "Oslo"}'))])), asked())
        assert names_of(answer.calls) == ["get_weather"]
        assert answer.notes == ["tool_name_read"]


@pytest.mark.parametrize("called", MARKED)
def test_what_stands_around_a_name_is_no_part_of_it(called: str) -> None:
    answer = heard(EmulatedTools(TextOnly([Say(block(called, '{"city": "Oslo"}'))])), asked())
    assert (names_of(answer.calls), answer.notes) == (["get_weather"], [])


def test_a_name_that_two_tools_could_be_is_neither() -> None:
    names = Names(["getWeather", "get_weather", "read_form", "tools.lock", "lock"])
    assert names.find("GET_WEATHER") is None
    assert names.find("get_weather") == "get_weather"
    assert names.find("tools.lock") == names.find("Tools.Lock") == "tools.lock"
    assert names.find("functions.lock") == "lock"
    assert Names(["say_abc", "say_bac"]).find("say_abbc") == "say_abc"
    assert Names(["say_bacd", "say_abdc"]).find("say_abcd") is None
    assert Names(["lock"], known=["Functions.Lock"]).find("functions.lock") is None


LETTERS = st.text("abcdeunr12_-.开关 ", min_size=1, max_size=12)


def oracle(said: str) -> str:
    return "".join(letter for letter in said.lower() if letter.isalnum())


def is_same(called: str, declared: str) -> bool:
    """The rule as it is promised, written another way: looser than what is done."""
    ours, theirs = oracle(called), oracle(declared)
    slips = {theirs[:i] + theirs[i : i + 2][::-1] + theirs[i + 2 :] for i in range(len(theirs))}
    slips |= {theirs[: i + 1] + theirs[i:] for i in range(len(theirs))}
    return ours == theirs or ours in slips


@given(LETTERS, LETTERS, st.sampled_from(WAYS))
@example("lock", "unlock", WAYS[0])
def test_no_call_comes_out_with_another_tools_name(declared: str, called: str, way: str) -> None:
    declared = declared.strip(" .-_") or "a"
    assume(not is_same(called, declared) and not (" " in called and " to=" in way))
    assert read_names(way.format(called, '{"id": 7}'), [declared]) == []


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_any_name_finds_a_declared_one_or_none(called: str, declared: list[str]) -> None:
    assert Names(declared).find(called) in (*declared, None)


LOCK = (tool("lock_door", id={"type": "string"}),)


@pytest.mark.parametrize(
    "text",
    [
        block("unlock_door", '{"id": "a"}'),
        'USE_TOOL unlock_door {"id": "a"}',
        'USE_TOOL: unlock_door({"id": "a"})',
        'USE_TOOL\nunlock_door\n{"id": "a"}',
        'USE_TOOL\n{"name": "unlock_door", "arguments": {"id": "a"}}',
        '{"name": "unlock_door", "arguments": {"id": "a"}}',
        '```json\n[{"arguments": {"id": "a"}, "name": "unlock_door"}]\n```',
        '<tool_call>{"name": "unlock_door", "arguments": {"id": "a"}}</tool_call>',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_another_tool_is_asked_about_in_every_form(text: str, size: int) -> None:
    right = block("lock_door", '{"id": "a"}')
    model = TextOnly([Say(text, size=size), Say(right)])
    answer = heard(EmulatedTools(model), asked(tools=LOCK))
    assert (answer.calls, answer.text) == ([("lock_door", {"id": "a"})], "")
    assert answer.notes == ["tool_call_corrected"]
    question = model.asked[1].messages[-1]["content"]
    assert "there is no tool 'unlock_door'" in question
    assert "NO_TOOL if none" in question
    assert "response_format" not in model.asked[1].params, "held to the form it has no way out"


@pytest.mark.parametrize("options", [Emulation(), Emulation(reask=0)])
def test_another_tool_that_stays_is_text_and_named(options: Emulation) -> None:
    text = '{"name": "unlock_door", "arguments": {"id": "a"}}'
    answer = heard(EmulatedTools(TextOnly([Say(text)]), options), asked(tools=LOCK))
    assert (answer.calls, answer.text) == ([], text)
    assert answer.notes == ["tool_repair_failed"]
    answer = heard(EmulatedTools(TextOnly([Say("USE_TOOL unlock_door {}")]), options),
                   asked(tools=LOCK))  # fmt: skip
    assert (answer.calls, answer.text) == ([], "unlock_door {}")
    assert answer.notes == ["tool_repair_failed"]


def test_calls_that_stay_text_stand_on_lines_of_their_own() -> None:
    two = block("unlock_door", "{}") + "\n" + block("fly", "{}")
    answer = heard(EmulatedTools(TextOnly([Say(two)])), asked(tools=LOCK))
    assert answer.text == "unlock_door {}\nfly {}"


def test_a_flood_of_unknown_calls_makes_a_short_question() -> None:
    flood = "\n".join(block(f"fly_{number}", "{}") for number in range(1000))
    model = TextOnly([Say(flood, size=4096), Say("NO_TOOL")])
    heard(EmulatedTools(model), asked(tools=LOCK))
    assert len(model.asked[1].messages[-1]["content"]) < 2000
    calls = "\n".join(block("get_weather".upper() + "." * n, '{"city": "a"}') for n in range(99))
    answer = heard(EmulatedTools(TextOnly([Say(calls, size=4096)])), asked())
    assert (len(answer.calls), len(answer.notes)) == (99, 17)


@pytest.mark.parametrize("text", ['{"name": "Ada", "input": "poems"}', '{"name": "Ada"}'])
def test_json_that_only_has_a_name_is_an_answer(text: str) -> None:
    answer = heard(EmulatedTools(TextOnly([Say(text)])), asked())
    assert (answer.text, answer.calls, answer.notes) == (text, [], [])


def test_a_model_that_finds_no_tool_for_it_says_so() -> None:
    model = TextOnly([Say(block("unlock_door", "{}")), Say("NO_TOOL")])
    answer = heard(EmulatedTools(model), asked(tools=LOCK))
    assert (answer.calls, answer.text) == ([], "unlock_door {}")


def test_a_correction_goes_to_the_call_of_its_own_name_first() -> None:
    bad = block("fly", "{}") + "\n" + block("get_weather", '{"town": "Oslo"}')
    right = block("get_weather", '{"city": "Oslo"}')
    answer = heard(EmulatedTools(TextOnly([Say(bad), Say(right)])), asked())
    assert answer.calls == [("get_weather", {"city": "Oslo"})]
    assert answer.notes == ["tool_repair_failed", "tool_call_corrected"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "unlock_door", "arguments": {"id": "a"}}',
        '{"name": "unlock_door", "id": "a"}',
        '{"arguments": {"name": "unlock_door", "arguments": {"id": "a"}}}',
        "```\nunlock_door\n```",
    ],
)
def test_arguments_alone_are_no_call_where_they_name_another_tool(text: str) -> None:
    named = {"type": "function", "function": {"name": "lock_door"}}
    with pytest.raises(Exception, match="made no tool call"):
        heard(EmulatedTools(TextOnly([Say(text)])), asked(tools=LOCK, tool_choice=named))
