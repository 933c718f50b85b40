"""Why nothing answers: the nearest turn, what differs, the rule that would allow it, briefly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from adapters.protocol import Json
from middleware.cassettes.match import (
    CandidateTurn,
    Explanation,
    MatchRules,
    explain,
    explain_exhausted,
    explain_left,
)
from tests.cassette.asks import (
    EXACT,
    LONG,
    SHORT,
    Change,
    changed,
    form_of,
    masks,
    prompt,
    put,
    round_of,
)
from tests.linear.measuring import seconds_unless_long
from tests.support.paths import ROOT

FILE, NAME = "cassettes/lamps.yaml", "lamps"
RECORD = "Record it: usetool record lamps --mode auto -- COMMAND"


def candidates(*bodies: Json, played: Sequence[int] = ()) -> list[CandidateTurn]:
    return [
        CandidateTurn(at, 10 * at, form_of(body), at in played) for at, body in enumerate(bodies, 1)
    ]


def why(now: Json, *recorded: Json, rules: MatchRules = EXACT) -> Explanation:
    return explain(form_of(now), candidates(*recorded), rules, FILE, NAME)


def test_the_message() -> None:
    old = "You sell lamps.\nToday is 2026-11-18. Be polite to all.\nSay no more."
    recorded = changed(SHORT, put(old, "messages", 0, "content"))
    now = changed(recorded, put(old.replace("18.", "19."), "messages", 0, "content"))
    shop = ("tools", 0, "function", "parameters", "properties", "shop", "type")
    now = changed(now, put("string", *shop))
    assert why(now, LONG, recorded).message.splitlines() == [
        "cassettes/lamps.yaml has no turn like this (2 turns, 0 played). Nearest is turn 2, "
        "line 20; it differs in 2 places:",
        "  messages[0].content   recorded  …Today is 2026-11-18. Be polite to all. Say no more.",
        "                        now       …Today is 2026-11-19. Be polite to all. Say no more."
        "     a date: mask {at: 'messages[0]', what: date}",
        '  tools.stock.parameters.properties.shop.type   recorded "integer"   now "string"',
        RECORD,
    ]


FOUND = changed(LONG, put("Found on 2026-11-18 at 08:30", "messages", 3, "content"))
PLACES: Sequence[tuple[Json, Change, list[tuple[str, object, object]]]] = (
    (SHORT, put(0.3, "temperature"), [("temperature", 0.2, 0.3)]),
    (SHORT, put(5, "top_k"), [("top_k", None, 5)]),
    (changed(SHORT, put(1, "flag")), put(True, "flag"), [("flag", 1, True)]),
    (SHORT, lambda body: body.pop("temperature"), [("temperature", 0.2, None)]),
    (SHORT, put("clerk-2", "model"), [("model", "clerk", "clerk-2")]),
    (
        SHORT,
        lambda body: body["messages"].pop(0),
        [("messages[0]", SHORT["messages"][0], None)],
    ),
    (
        LONG,
        lambda body: body["messages"].insert(1, {"role": "user", "content": "Hello"}),
        [("messages[1]", None, {"role": "user", "content": "Hello"})],
    ),
    (
        LONG,
        put('{"sku":"L-1","shop":"7"}', "messages", 2, "tool_calls", 0, "function", "arguments"),
        [("messages[2].tool_calls[0].function.arguments.shop", 7, "7")],
    ),
    (
        LONG,
        put('{"sku":"L-1","shop":true}', "messages", 2, "tool_calls", 0, "function", "arguments"),
        [("messages[2].tool_calls[0].function.arguments.shop", 7, True)],
    ),
    (LONG, put("none", "messages", 3, "content"), [("messages[3].content", "3", "none")]),
    (
        changed(SHORT, put("shop.v2", "tools", 1, "function", "name")),
        put("Sells.", "tools", 1, "function", "description"),
        [('tools["shop.v2"].description', "Buys one.", "Sells.")],
    ),
    (
        SHORT,
        put(["sku"], "tools", 0, "function", "parameters", "required"),
        [("tools.stock.parameters.required[1]", "shop", None)],
    ),
)


@pytest.mark.parametrize(("recorded", "change", "expected"), PLACES)
def test_what_differs_is_named_by_its_path(
    recorded: Json, change: Change, expected: list[tuple[str, object, object]]
) -> None:
    told = why(changed(recorded, change), recorded)
    assert [(one.path, one.recorded, one.now) for one in told.differences] == expected
    assert all(path in told.message for path, _, _ in expected)
    assert told.nearest == 1


HINTS: Sequence[tuple[str, str, str]] = (
    ("It is 2026-11-18.", "It is 2026-11-19.", "a date: mask {at: 'messages[0]', what: date}"),
    ("At 08:30.", "At 21:05.", "a time: mask {at: 'messages[0]', what: time}"),
    (
        "Since 2026-11-18T08:30:12Z it rains",
        "Since 2026-11-19T08:30:13Z it rains",
        "a date and time: mask {at: 'messages[0]', what: datetime}",
    ),
    (
        "Run 3f2504e0-4f89-41d3-9a0c-0305e82c3301 goes",
        "Run 3f2504e0-4f89-41d3-9a0c-0305e82c3302 goes",
        "a UUID: mask {at: 'messages[0]', what: uuid}",
    ),
    ("Use /tmp/a1/x now", "Use /tmp/b2/x now", "a path: mask {at: 'messages[0]', what: path}"),
    (
        "Go to http://localhost:40123/ and",
        "Go to http://localhost:51999/ and",
        "a port: mask {at: 'messages[0]', what: port}",
    ),
    ("Trace d41d8cd98f00b204", "Trace e99a18c428cb38d5", "a hex number: mask"),
    ("Since 1763454612", "Since 1763454999", "a hex number: mask"),
    ("Three lamps", "Seven lamps", ""),
    ("Lamp 3", "Lamp 7", ""),
    ("Born on 2026-11-18.", "Born on a day.", ""),
)


@pytest.mark.parametrize(("old", "new", "hint"), HINTS)
def test_a_known_kind_comes_with_its_rule(old: str, new: str, hint: str) -> None:
    filler = "You sell lamps. " * 9
    for around in ("{}", filler + "{} " + filler, filler + "\n{}\n" + filler):
        told = why(prompt(around.format(new)), prompt(around.format(old)))
        assert told.differences[0].hint.startswith(hint)
        assert bool(told.differences[0].hint) is bool(hint)


def test_a_line_more_is_shown() -> None:
    text = "You sell lamps. " * 9 + "Be polite."
    told = why(prompt(text + "\n"), prompt(text)).differences[0]
    assert (told.recorded, told.now) == (f"…{text[-40:]}", f"…{text[-40:]} ")
    told = why(prompt(text + "\nSay goodbye."), prompt(text)).differences[0]
    assert (told.recorded, told.now) == (f"…{text[-40:]}", f"…{text[-40:]} Say goodbye.")


def test_each_kind_is_named_once_wherever_it_differs() -> None:
    old = "Day 2026-11-18 and 2026-11-18\nat 08:30 sharp"
    now = "Day 2026-11-19 and 2026-11-20\nat 09:30 sharp"
    hint = why(prompt(now), prompt(old)).differences[0].hint
    assert (hint.count("what: date}"), hint.count("what: time}")) == (1, 1)


def test_results_are_masked_all_together() -> None:
    now = changed(FOUND, put("Found on 2026-11-19 at 08:30", "messages", 3, "content"))
    hint = why(now, FOUND).differences[0].hint
    assert hint == "a date and time: mask {at: 'messages[role=tool]', what: datetime}"


def test_what_is_masked_is_no_difference() -> None:
    rules = masks({"at": "messages[0]", "what": "date"})
    now, recorded = "It is 2026-11-19, a warm day", "It is 2026-11-18, a cold day"
    told = why(prompt(now), prompt(recorded), rules=rules)
    assert told.differences[0].hint == ""
    assert told.differences[0].now == "It is [date#0], a warm day"
    twice = why(prompt("2026-11-19 2026-11-20"), prompt("2026-11-18 2026-11-18"), rules=rules)
    assert twice.differences[0].recorded == "[date#0] [date#0]"
    assert twice.differences[0].now == "[date#0] [date#1]"


def test_what_does_not_count_is_no_difference() -> None:
    now = changed(LONG, lambda body: body["messages"].pop(0)) | {"temperature": 1}
    now = changed(now, put("4", "messages", 2, "content"))
    told = why(now, LONG, rules=MatchRules(level="conversation"))
    assert [(one.path, one.recorded, one.now) for one in told.differences] == [
        ("messages[2].content", "3", "4")
    ]
    strict = why(
        changed(SHORT, lambda body: body["tools"].reverse()), SHORT, rules=MatchRules("strict")
    )
    assert strict.differences[0].path == "tools_in_order[0]"


def test_the_longest_equal_beginning_is_nearest() -> None:
    turns = [
        SHORT["messages"],
        [*SHORT["messages"], *round_of(("a", "buy", "{}", "ok"))],
        [*SHORT["messages"], *round_of(("a", "buy", "{}", "ok"), ("b", "buy", "{}", "sold out"))],
    ]
    recorded = [SHORT | {"messages": messages} for messages in turns]
    now = SHORT | {"messages": [*turns[1], {"role": "user", "content": "Thank you"}]}
    told = explain(form_of(now), candidates(LONG, *recorded, *recorded), EXACT, FILE, NAME)
    assert told.nearest == 3
    assert told.message.count("line") <= 3
    for masked in (masks({"at": "messages[0]", "what": "date"}), EXACT):
        now = changed(now, put("You sell lamps.\nBe quick.", "messages", 0, "content"))
        assert explain(form_of(now), candidates(LONG, *recorded), masked, FILE, NAME).nearest == 3


def test_of_equal_turns_one_that_waits_is_named() -> None:
    now = changed(SHORT, put("还有灯泡吗？", "messages", 1, "content"))
    found = candidates(SHORT, SHORT, SHORT, played=[1])
    told = explain(form_of(now), found, EXACT, FILE, NAME)
    assert told.nearest == 2
    assert "(3 turns, 1 played)" in told.message
    assert "Also near" not in told.message


def test_of_a_thousand_the_most_alike_text_is_nearest() -> None:
    recorded = [prompt("You sell lamps.", f"Order {n}: {n * 7} lamps") for n in range(1000)]
    found = candidates(*recorded)
    now = form_of(prompt("You sell lamps.", "Order 77: 539 bulbs"))
    assert explain(now, found, EXACT, FILE, NAME).nearest == 78
    assert seconds_unless_long(lambda: explain(now, found, EXACT, FILE, NAME)) < 0.15


@pytest.mark.parametrize("recorded", [[], [prompt("Be brief.", "Tell me of the moon")], [LONG]])
def test_nothing_close(recorded: list[Json]) -> None:
    now = {"model": "other", "messages": [{"role": "user", "content": "qqq " * 2000}]}
    told = why(now, *recorded)
    assert "nothing close" in told.message
    assert "Nearest" not in told.message
    assert told.message.endswith(RECORD)
    assert (told.nearest, told.differences) == (None, ())
    assert len(told.message) <= 2000


def test_the_message_is_short_whatever_differs() -> None:
    now = changed(
        LONG, lambda body: body.update({f"field_{n}" * 20: "v" * 500 for n in range(300)})
    )
    now = changed(now, put("x" * 3000 + "\x1b[31m\n" * 200, "messages", 0, "content"))
    told = why(now, LONG)
    assert len(told.message) <= 2000
    assert told.message.endswith(RECORD)
    assert "\x1b" not in told.message
    assert len(told.differences) == 100


def test_embeddings() -> None:
    recorded: Json = {"model": "vectors", "input": ["a lamp", "a shade"], "dimensions": 8}
    told = explain(
        recorded | {"input": ["a lamp", "two shades"]},
        [CandidateTurn(1, 4, recorded)],
        EXACT,
        FILE,
        NAME,
    )
    assert [one.path for one in told.differences] == ["input[1]"]


def test_all_are_played() -> None:
    told = explain_exhausted(candidates(SHORT, SHORT), FILE, NAME)
    assert told.message.startswith(
        "cassettes/lamps.yaml has this ask in 2 turns, all played: turn 1, line 10; turn 2, line 20"
    )
    assert 'repeats = "last"' in told.message
    assert "/v1/x_usetool/cassettes/lamps/rewind" in told.message
    assert (told.nearest, told.differences) == (2, ())
    many = explain_exhausted(candidates(*[SHORT] * 500), FILE, NAME)
    assert len(many.message) <= 2000


def test_its_client_left() -> None:
    told = explain_left(candidates(SHORT)[0], FILE, NAME)
    assert "turn 1, line 10" in told.message
    assert "--keep-errors" in told.message
    assert told.nearest == 1


FIRST = """
import time
from tests.cassette.match.test_explain import prompt, why
begun = time.process_time()
why(prompt("now 2026-11-19"), prompt("now 2026-11-18"))
print(time.process_time() - begun)
"""


def test_the_first_is_quick_enough() -> None:
    """The patterns are made when they are first needed: in a process where nobody has yet."""
    told = subprocess.run([sys.executable, "-c", FIRST], cwd=ROOT, capture_output=True, check=True)
    assert float(told.stdout) < 0.5
