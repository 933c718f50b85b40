"""Marks of formats: where a call ends, and words about marks that are text."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from middleware.wrappers.emulation.formats.raw_call import Fault
from tests.wrappers.emulation.read.formats import PARIS, TWO_DAYS
from tests.wrappers.emulation.read.reading import NOW, OSLO, Call, cut_everywhere, read

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
            ready = [one for one in seen.reader.judge.open if not isinstance(one, Fault)]
            made = [*seen.made(), *((one.name, orjson.loads(one.arguments)) for one in ready)]
            assert made in ([OSLO, PARIS], [PARIS]), text
            assert made == [OSLO, PARIS] or len(seen.reader.judge.open) == 2
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
        assert (seen.made(), seen.reader.judge.open, seen.text) == ([], [], text), pieces


def test_a_list_of_calls_amid_prose_is_read_as_one_call_is() -> None:
    text = 'Sure.\n[get_weather(city="Oslo"), clock.now()]\nWait.'
    seen = read(list(text))
    assert (seen.made(), seen.text) == ([OSLO, NOW], "Sure.\nWait.")


def test_a_tag_with_an_odd_name_is_read_alike_in_every_cut() -> None:
    for text in ("<invoke name=<>/>", "<invoke name=</>", "A <invoke name=<>/> b"):
        expected = read([text]).whole()
        for pieces in cut_everywhere(text):
            assert read(pieces).whole() == expected, pieces
