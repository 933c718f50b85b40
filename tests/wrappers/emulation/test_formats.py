"""Formats of models that were met after the table was first drawn, and what goes wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from adapters.shared.calls import Calls
from middleware.wrappers.emulation import Fault, Reader, ReadRules
from tests.wrappers.emulation.test_reader import NOW, OSLO, TOOLS, Call, cut_everywhere, read

PARIS: Call = ("get_weather", {"city": "Paris"})
TWO_DAYS: Call = ("get_weather", {"city": "Oslo", "days": 2})


def marked(mark: str, name: str = "get_weather") -> str:
    return (
        f'<{mark}invoke name="{name}"><{mark}parameter name="city">Oslo</{mark}parameter>'
        f"</{mark}invoke>"
    )


def solar(city: str) -> str:
    return (
        "<|tool_call:start|>get_weather\n"
        f"<|tool_arg:start|>city<|tool_arg:value|>{city}<|tool_arg:end|>\n<|tool_call:end|>"
    )


def glm(before: str = "", behind: str = "", kind: str = "") -> str:
    return (
        f"<{before}tool_call{behind}>get_weather<{before}arg_key{behind}>city"
        f"</{before}arg_key{behind}>{kind}<{before}arg_value{behind}>Oslo"
        f"</{before}arg_value{behind}></{before}tool_call{behind}>"
    )


# Whole answers, and the calls they mean; nothing of them is text.
FORMATS: Sequence[tuple[str, list[Call]]] = [
    (f"<function_calls>\n{marked('antml:')}\n</function_calls>", [OSLO]),
    (f"<｜GCML｜tool_calls>{marked('｜GCML｜')}</｜GCML｜tool_calls>", [OSLO]),
    (
        f"<｜tool_calls_begin｜><｜tool_call_begin｜>{marked('steptml:')}<｜tool_call_end｜>"
        f"<｜tool_sep｜><｜tool_call_begin｜>function<｜tool_sep｜>get_weather\n{marked('steptml:')}"
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        [OSLO, OSLO],
    ),
    (f"{solar('Oslo')}\n{solar('Paris')}", [OSLO, PARIS]),
    ("<|tool_call:start|>clock.now\n<|tool_call:end|>", [NOW]),
    (
        f"<tool_calls:opensource>{glm('', ':opensource')}</tool_calls:opensource>",
        [OSLO],
    ),
    (f"<ifm|tool_calls>{glm('ifm|')}</ifm|tool_calls>", [OSLO]),
    (glm("ifm|", "", "<ifm|arg_type>string</ifm|arg_type>"), [OSLO]),
    (
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}"
        "<end_function_call><start_function_call>call:clock.now{}<end_function_call>",
        [TWO_DAYS, NOW],
    ),
    ('<function_calls>get_weather(city="Oslo")\nclock.now()</function_calls>', [OSLO, NOW]),
    ("<function_calls>[get_weather(city='Oslo')]</function_calls>", [OSLO]),
    ('<|python_tag|>get_weather.call(city="Oslo")', [OSLO]),
    (
        '[TOOL_REQUEST]\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n[END_TOOL_REQUEST]'
        "\n[TOOL_REQUEST]clock.now {}[END_TOOL_REQUEST]",
        [OSLO, NOW],
    ),
    (
        '<tool_call><name>get_weather</name><arguments>{"city": "Oslo"}</arguments></tool_call>',
        [OSLO],
    ),
    # A bracket in a value ends neither the call nor the list of calls.
    ("[get_weather(tags=[])]", [("get_weather", {"tags": []})]),
    (
        "[get_weather(opts={'a': [1]}, tags=['x'])]",
        [("get_weather", {"opts": {"a": [1]}, "tags": ["x"]})],
    ),
    ("[get_weather(city=Oslo), clock.now()]", [OSLO, NOW]),
    (
        "<|tool_call_start|>[get_weather(tags={'a', 'b'})]<|tool_call_end|>",
        [("get_weather", {"tags": ["a", "b"]})],
    ),
    # Calls as Python writes them are the whole answer, or stand in a fence made for them.
    ('get_weather(city="Oslo (N)")', [("get_weather", {"city": "Oslo (N)"})]),
    ('get_weather(city="Oslo")\nclock.now()\n', [OSLO, NOW]),
    ('```tool_code\nget_weather(city="Oslo")\n```', [OSLO]),
    # Objects one after the other, without a list around them.
    (
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}; '
        '{"name": "clock.now", "parameters": {}}',
        [OSLO, NOW],
    ),
    (
        '{"name": "get_weather", "arguments": {"city": "Oslo"}},\n'
        '{"name": "clock.now", "arguments": {}}',
        [OSLO, NOW],
    ),
    ('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}', [OSLO]),
    (
        '{"tool_calls": [{"id": "a", "type": "function", "function": '
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}',
        [OSLO],
    ),
    ('{"function_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}', [OSLO]),
    # Words above the JSON that say what it is.
    (
        'Action: ```json\n[{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}]\n```',
        [OSLO],
    ),
    (
        '**Tool Call:**\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\n'
        '**Tool Call:**\n```json\n{"name": "clock.now", "arguments": {}}\n```',
        [OSLO, NOW],
    ),
    ('Function call: {"name": "get_weather", "arguments": {"city": "Oslo"}}', [OSLO]),
    # The end of a fence in front of the closer, with more behind it.
    (
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>clock.now\n```json\n{}\n```<｜tool▁call▁end｜>",
        [OSLO, NOW],
    ),
    # Line ends that came out as two characters.
    (
        "<tool_call>\\n<function=get_weather>\\n<parameter=city>Oslo</parameter>\\n</function>\\n"
        "</tool_call>",
        [OSLO],
    ),
    # Harmony: a tool without parameters is called with an empty message.
    ("<|channel|>commentary to=functions.clock.now <|constrain|>json<|message|><|call|>", [NOW]),
    # What the model makes up of its own call's result goes.
    (
        '<tool_call>{"name": "clock.now", "arguments": {}}</tool_call>\n'
        '<tool_response>\n{"now": 12}\n</tool_response>\nIt is noon.',
        [NOW],
    ),
]


@pytest.mark.parametrize(("text", "calls"), FORMATS)
def test_a_format_is_read_in_every_cut(text: str, calls: list[Call]) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert seen.made() == calls, pieces
        assert seen.text.strip() == "", pieces


def test_elements_nested_without_end_are_a_fault_and_no_crash() -> None:
    space = "]<]minimax[>["
    seen: Any = read(
        [f'{space}<invoke name="get_weather">', f"{space}<opts>" * 3000, f"{space}</invoke>"]
    )
    assert seen.faults() == ["unreadable_arguments"]
    assert seen.text == ""


# Text that looks like one of them and is none.
LOOKALIKES: Sequence[str] = [
    'Action:\n```json\n{"a": 1}\n```\nThat is the config.',
    'Tool calls: {"max": 3} is the limit.',
    "Action: ```sh\nmake\n``` is the target.",
    "Tool call: none was needed.",
    "get_weather(city) returns the weather of a city.",
    'To ask for it, write this:\nget_weather(city="Oslo")\nand wait.',
    '```python\nget_weather(city="Oslo")\n```',
    "get_weather is a tool; clock.now (the other one) needs nothing.",
    "get_weather(" * 20,
    '{"name": "Oslo"}; {"name": "Paris"}',
    'A <tool_response> holds a result; so does "[TOOL_RESULTS]".',
    "Use <start_function_call> in Gemma, <｜tool_call_begin｜> in Step 3.",
    "The marker `<｜tool▁calls▁begin｜>` opens a list, `<invoke name=` a call.",
    "They end with `</think>`, all of them.",
    '```xml\n<function name="f">\n  <param name="x">1</param>\n</function>\n```\nIs a call.',
    'See <invoke name="x"> in the docs.\n\nIt is never closed.',
    # A call that is part of something else, and a tool as a request declares it.
    '{\n  "log": [\n    {"name": "get_weather", "arguments": {"city": "Oslo"}}\n  ]\n}',
    '{"type": "function", "function": {"name": "get_weather", "parameters": {}}}',
    '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}',
]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_a_call_stays_text(text: str) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen: Any = read(pieces)
        assert seen.text == text, pieces
        assert not seen.calls
        assert not seen.reader.open


def test_a_quoted_token_takes_no_text_with_it() -> None:
    text = "Llama writes <|python_tag|>name\nand so on, to the end."
    seen = read([text])
    assert seen.text == "Llama writes "
    assert [one.text for one in seen.reader.open if isinstance(one, Fault)] == [
        "name\nand so on, to the end."
    ]


def test_an_unclosed_call_of_a_tool_that_takes_nothing_is_a_call() -> None:
    assert read(["<tool_call>\n<function=clock.now>\n"]).made() == [NOW]


def test_apriel_ends_its_thought_with_words() -> None:
    text = (
        "I look.\n[BEGIN FINAL RESPONSE]\n"
        '<tool_calls>[{"name": "clock.now", "arguments": {}}]</tool_calls>\n[END FINAL RESPONSE]'
    )
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert (seen.thought, seen.text, seen.made()) == ("I look.\n", "", [NOW])


def test_a_token_before_the_end_of_a_thought_is_seen_in_every_cut() -> None:
    text = f"So <tool_call></think>\nUSE_TOOL\nTOOL_NAME: {NOW[0]}"
    expected = read([text]).whole()
    for pieces in cut_everywhere(text):
        assert read(pieces).whole() == expected


def test_a_token_with_a_line_end_in_it_is_whole_in_every_cut() -> None:
    text = (
        "x" * 80 + "<|message_sep|>\n\nfunction call<|role_sep|>\n"
        '{"name": "clock.now", "arguments": {}}'
    )
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert (seen.text, seen.made()) == ("x" * 80, [NOW])


def test_the_beginning_waits_no_longer_than_a_thought_may_end_in_it() -> None:
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=20))
    assert [len(list(reader.feed(letter))) for letter in "a" * 25] == [0] * 19 + [1] * 6
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=20))
    assert not [*reader.feed("a" * 18 + "</thi"), *reader.feed("n")]
    assert [type(one).__name__ for one in reader.feed("k>b")] == ["ReasoningDelta", "TextDelta"]


# Two calls whose first is not closed, behind the marks of every format that has an end mark.
ENDED: Sequence[tuple[str, str, str]] = [
    ("<tool_call>", '{"name": "get_weather", "arguments": {"city": "CITY"}}', "</tool_call>"),
    ("<TOOLCALL>", '[{"name": "get_weather", "arguments": {"city": "CITY"}}]', "</TOOLCALL>"),
    ("<tool_calls>", '[{"name": "get_weather", "arguments": {"city": "CITY"}}]', "</tool_calls>"),
    (
        "<|START_ACTION|>",
        '[{"tool_name": "get_weather", "parameters": {"city": "CITY"}}]',
        "<|END_ACTION|>",
    ),
    (
        "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>",
        '{"city": "CITY"}',
        "<|tool_call_end|>",
    ),
    (
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n",
        '{"city": "CITY"}',
        "\n```<｜tool▁call▁end｜>",
    ),
    ("<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>", '{"city": "CITY"}', "<｜tool▁call▁end｜>"),
    ("[TOOL_CALLS]get_weather[ARGS]", '{"city": "CITY"}', "[/TOOL_CALLS]"),
    ("[TOOL_REQUEST]get_weather", '{"city": "CITY"}', "[END_TOOL_REQUEST]"),
    ("<function_calls>get_weather(city=", '"CITY")', "</function_calls>"),
    ("<|tool_calls|>[get_weather(city=", '"CITY")]', "<|/tool_calls|>"),
]


@pytest.mark.parametrize(("begin", "value", "end"), ENDED)
def test_the_end_mark_of_a_format_bounds_a_call_that_is_not_closed(
    begin: str, value: str, end: str
) -> None:
    whole = value.replace("CITY", "Paris")
    for lost in range(1, len(value) - value.index("CITY") - 3):
        text = begin + value[:-lost].replace("CITY", "Oslo") + end + begin + whole + end
        for pieces in ([text], list(text), [text[at : at + 5] for at in range(0, len(text), 5)]):
            seen = read(pieces)
            ready = [one for one in seen.reader.open if not isinstance(one, Fault)]
            made = [*seen.made(), *((one.name, orjson.loads(one.arguments)) for one in ready)]
            assert made in ([OSLO, PARIS], [PARIS]), text
            assert made == [OSLO, PARIS] or len(seen.reader.open) == 2
            assert seen.text.strip() == "", text


def test_a_mark_in_a_whole_string_is_data() -> None:
    for begin, value, end in ENDED:
        if ")" not in value:
            city = f"a {end.strip().replace('`', '')} b".replace("\n", "")
            text = begin + value.replace("CITY", city) + end
            assert read([text]).made() == [("get_weather", {"city": city})], text


def test_closers_too_many_go_with_the_call() -> None:
    for begin, value, end in ENDED:
        closers = ["}", "}}", "]", "}]"] if ")" not in value else [")", "]"]
        for extra in closers:
            text = begin + value.replace("CITY", "Oslo") + extra + end
            for pieces in ([text], list(text)):
                seen = read(pieces)
                assert (seen.made(), seen.text) == ([OSLO], ""), text
    for text in (
        '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]]',
        '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]]',
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}}}',
    ):
        assert (read(list(text)).made(), read(list(text)).text) == ([OSLO], "")


@pytest.mark.parametrize(
    "end",
    [
        *("<eos>", "</s>", "<|user|>", "<|observation|>", "<|im_end|>", "<|eot_id|>", "[e~["),
        *("<|content_model_end_sampling|>", "<｜User｜>", "<end_of_turn>", "<turn|>", "[/INST]"),
        *("<|a_token-nobody_knows|>", "[|endofturn|]", "<|im_end|>\n<|endoftext|>\n"),
    ],
)
def test_special_tokens_at_the_very_end_are_no_text(end: str) -> None:
    call = '<tool_call>{"name": "clock.now", "arguments": {}}</tool_call>'
    for pieces in ([f"Fine.{end}"], list(f"Fine.{end}")):
        assert read(pieces).text == "Fine."
    for pieces in ([call + end], list(call + end)):
        assert (read(pieces).made(), read(pieces).text) == ([NOW], "")
    listing = f"It prints:\n```\nprint('{end}')\n```{end}"
    assert read(list(listing)).text == listing.removesuffix(end)
    for text in (f"The token {end} ends it.", f"It ends with `{end}`", f"`{end}` ends it."):
        for pieces in ([text], list(text)):
            assert read(pieces).text == text


@pytest.mark.parametrize("body", ["not a call at all", '{"nome": 3', '{"nome": 3}', "x: [1, 2"])
def test_a_block_that_cannot_be_read_loses_its_tags(body: str) -> None:
    text = f"Let me see.\n<tool_call>{body}</tool_call>"
    for pieces in ([text], list(text)):
        seen = read(pieces)
        assert seen.faults() == ["unreadable_arguments"]
        assert seen.text.strip() == "Let me see."


def k3(text: str) -> str:
    return (
        text.replace("<|open|>", "<|open|> ").replace("<|close|>", "<|close|> ")
        .replace("<|sep|>", " <|sep|>")
    )  # fmt: skip


K3 = (
    '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
    '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>"
)
FURTHER: Sequence[tuple[str, list[Call]]] = [
    *(
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
            '{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>'
            .replace("｜", bar).replace("▁", line),
            [OSLO],
        )
        for bar in ("|", "｜") for line in ("▁", "_", " ", "\\_")
    ),
    (K3, [OSLO]),
    (k3(K3), [OSLO]),
    (K3.replace('"city"', '"c&amp;q"'), [("get_weather", {"c&q": "Oslo"})]),
    ('<functionname="get_weather"><paramname="city">Oslo</param></function>', [OSLO]),
    ('<functionĠname="get_weather"><paramĠname="city">Oslo</param></function>', [OSLO]),
    ('<invokename="get_weather"><parametername="city">Oslo</parameter></invoke>', [OSLO]),
    ("[TOOL_CALLS]clock.now", [NOW]),
    ("[TOOL_CALLS]clock.now</s>", [NOW]),
    ('[TOOL_CALLS]clock.now[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', [NOW, OSLO]),
    ('<|tool_call>call:get_weather{city:<|"|>Oslo', [OSLO]),
    (
        '<|tool_call>call:get_weather{city:<|"|>Oslo}<tool_call|>'
        "<|tool_call>call:clock.now{}<tool_call|>",
        [OSLO, NOW],
    ),
    ("<tool>get_weather</tool><tool_input>{'city': 'Oslo'}</tool_input>", [OSLO]),
    ("<tool>send_mail</tool>\n<tool_input>bob</tool_input>", [("send_mail", {"to": "bob"})]),
    ("<|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}]", [OSLO]),
    ("<|tool_calls|>[get_weather(city='Oslo'), clock.now()]", [OSLO, NOW]),
    ("<tool_call>get_weather city=Oslo days=2</tool_call>", [TWO_DAYS]),
    ("<tool_call>get_weather city=\"Oslo\", days=2</tool_call>", [TWO_DAYS]),
    ("<tool_call>get_weather(city='Oslo', days=2)</tool_call>", [TWO_DAYS]),
    ("<invoke name=clock.now/>", [NOW]),
    (
        '<invoke name="get_weather"><opts><tag>a</tag><tag>b</tag></opts></invoke>',
        [("get_weather", {"opts": {"tag": ["a", "b"]}})],
    ),
    (
        '<invoke name="get_weather"><tags>a</tags><tags>b</tags></invoke>',
        [("get_weather", {"tags": ["a", "b"]})],
    ),
    (
        "]<]minimax[>[<invoke name=\"get_weather\">]<]minimax[>[<opts>]<]minimax[>[<tag>a"
        "]<]minimax[>[</tag>]<]minimax[>[<tag>b]<]minimax[>[</tag>]<]minimax[>[</opts>"
        "]<]minimax[>[</invoke>",
        [("get_weather", {"opts": {"tag": ["a", "b"]}})],
    ),
    (
        '[get_weather(city="if x: print("a", "b")\n    y("c")", days=2)]',
        [("get_weather", {"city": 'if x: print("a", "b")\n    y("c")', "days": 2})],
    ),
    ('[get_weather(city="Oslo")\nclock.now()]', [OSLO, NOW]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), FURTHER)
def test_a_further_form_is_read_in_every_cut(text: str, calls: list[Call]) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert (seen.made(), seen.text.strip()) == (calls, ""), pieces


SPOKEN = "Let me look that up:"


@pytest.mark.parametrize("between", [" ", "\n", "\n\n"])
@pytest.mark.parametrize("mark", ["[TOOL_CALLS]", "[TOOL_REQUEST]", "<|python_tag|>"])
def test_words_between_a_mark_and_its_call_are_text(mark: str, between: str) -> None:
    call = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    for body in (call, f"[{call}]"):
        text = f"{mark} {SPOKEN}{between}{body}"
        for pieces in ([text], *cut_everywhere(text), list(text)):
            seen = read(pieces)
            assert (seen.made(), seen.text) == ([OSLO], SPOKEN), pieces
    again = f"[TOOL_CALLS] {SPOKEN} [{call}] [TOOL_CALLS] And then: [{call}][/TOOL_CALLS]"
    for pieces in ([again], list(again)):
        assert read(pieces).made() == [OSLO, OSLO]
        assert read(pieces).text.split() == f"{SPOKEN} And then:".split()


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS] is Mistral's mark.",
        '[TOOL_CALLS] is what it writes, for example {"name": "get_weather", "arguments": {}}',
        'The mark [TOOL_CALLS] stands before it: [{"name": "get_weather", "arguments": {}}] here.',
        '`[TOOL_CALLS]` stands before it: [{"name": "get_weather", "arguments": {}}] here.',
        '[TOOL_CALLS] stands before it: [{"name": "get_weather", "arguments": {}}], as told.',
        '[TOOL_CALLS] stands before it: {"name": "no_such_tool", "arguments": {}}',
        '[TOOL_CALLS] stands before data: {"city": "Oslo"}',
        "[TOOL_CALLS] stands " + "far " * 50 + 'from {"name": "get_weather"} here.',
    ],
)
def test_a_mark_that_is_spoken_of_stays_text(text: str) -> None:
    for pieces in ([text], *cut_everywhere(text), list(text)):
        seen = read(pieces)
        assert (seen.made(), seen.reader.open, seen.text) == ([], [], text), pieces


def test_a_list_of_calls_amid_prose_is_read_as_one_call_is() -> None:
    text = 'Sure.\n[get_weather(city="Oslo"), clock.now()]\nWait.'
    seen = read(list(text))
    assert (seen.made(), seen.text) == ([OSLO, NOW], "Sure.\nWait.")


def test_a_tag_with_an_odd_name_is_read_alike_in_every_cut() -> None:
    for text in ("<invoke name=<>/>", "<invoke name=</>", "A <invoke name=<>/> b"):
        expected = read([text]).whole()
        for pieces in cut_everywhere(text):
            assert read(pieces).whole() == expected, pieces
