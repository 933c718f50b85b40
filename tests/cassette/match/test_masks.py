"""Values that may differ: what each word stands for, where, how equal ones stay equal; mistakes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapters.protocol import Json
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.match import (
    Mask,
    MatchRules,
    combined,
    read_rules,
    substitutions,
)
from tests.cassette.asks import LONG, changed, key, masks, match, prompt, put, round_of

# What a word stands for: two values that may stand for each other.
VALUES: Sequence[tuple[str, str, str]] = (
    ("date", "2026-11-18", "2027-01-02"),
    ("date", "18.11.2026", "2.1.2027"),
    ("date", "11/18/2026", "01/02/2027"),
    ("date", "2026年11月18日", "2027年1月2日"),
    ("date", "2026年11月18日 星期三", "2027年1月2日 星期六"),
    ("date", "18 November 2026", "2 January 2027"),
    ("date", "November 18, 2026", "January 2, 2027"),
    ("date", "Wednesday, November 18, 2026", "Saturday, January 2, 2027"),
    ("date", "18th Nov 2026", "2nd Jan 2027"),
    ("date", "2026-11-18 (Wednesday)", "2027-01-02 (Sat)"),
    ("time", "08:30", "21:05"),
    ("time", "08:30:12.345", "21:05:59.000001"),
    ("time", "8:30 am", "9:05 PM"),
    ("time", "08:30:12+08:00", "21:05:59+01:00"),
    ("datetime", "2026-11-18T08:30:12Z", "2027-01-02T21:05:59Z"),
    ("datetime", "2026-11-18 08:30:12.123", "2027-01-02 21:05:59.9"),
    ("datetime", "18.11.2026, 08:30", "02.01.2027, 21:05"),
    ("datetime", "Wed, 18 Nov 2026 08:30:12 GMT", "Sat, 2 Jan 2027 21:05:59 GMT"),
    ("datetime", "Wed Nov 18 08:30:12 2026", "Sat Jan  2 21:05:59 2027"),
    ("uuid", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "6FA459EA-EE8A-3CA4-894E-DB77E160355E"),
    ("hex", "d41d8cd98f00b204", "e99a18c428cb38d5"),
    ("hex", "0xdeadbeef1", "0xcafebabe2"),
    ("ulid", "01HZX3V7K2Q8R9S0T1V2W3X4Y5", "01j0a1b2c3d4e5f6g7h8j9k0m1"),
    ("number", "17", "-4.25"),
    ("number", "1,234.5", "6e-7"),
    ("path", "/tmp/run-1/out.txt", "/var/folders/zz/out"),
    ("path", "C:\\Temp\\a1", "~/lamps/b2"),
    (r"ORD_\w+", "ORD_a1", "ORD_zzz"),
)
# What a word does not stand for.
NONE: Sequence[tuple[str, str, str]] = (
    ("date", "v1.2.3", "v1.2.4"),
    ("date", "2026-13-45", "2026-13-46"),
    ("date", "10.0.0.1", "10.0.0.2"),
    ("date", "12026-11-18", "12026-11-19"),
    ("time", "08:61", "08:62"),
    ("uuid", "3f2504e0-4f89", "3f2504e0-4f90"),
    ("hex", "cafe", "beef"),
    ("number", "L-17a", "L-18a"),
    ("path", "and/or", "and/if"),
    ("path", "和/或", "和/如"),
    ("port", "08:30", "08:31"),
    ("ulid", "01HZX3V7K2", "01HZX3V7K3"),
)
AROUND = ("It is {}.", "it is ({}) now", "现在是{}，请回答。", "at={}; go")


@pytest.mark.parametrize(("what", "old", "new"), VALUES)
@pytest.mark.parametrize("around", AROUND)
def test_a_value_may_differ(what: str, old: str, new: str, around: str) -> None:
    rules = masks({"at": "messages[0]", "what": what})
    recorded, now = prompt(around.format(old)), prompt(around.format(new))
    assert match(recorded, now, rules)
    assert not match(recorded, now)
    assert not match(recorded, prompt(around.format(new) + "!"), rules)
    assert not match(recorded, prompt(around.format("something")), rules)


@pytest.mark.parametrize(("what", "old", "new"), NONE)
def test_what_is_no_such_value_counts(what: str, old: str, new: str) -> None:
    rules = masks({"at": "messages[0]", "what": what})
    assert not match(prompt(f"It is {old} now"), prompt(f"It is {new} now"), rules)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "db.test"])
def test_a_port(host: str) -> None:
    rules = masks({"at": "messages[0]", "what": "port"})
    assert match(prompt(f"http://{host}:40123/x"), prompt(f"http://{host}:51999/x"), rules)
    assert not match(prompt(f"http://{host}:40123/x"), prompt(f"http://{host}:51999/y"), rules)


def test_values_within_a_longer_one() -> None:
    """The longest of what begins in one place counts, whatever stands first in the rules."""
    rules = masks(*({"at": "messages[0]", "what": what} for what in ("number", "date", "time")))
    old, new = "Now 2026-11-18T08:30:12, try 4", "Now 2027-01-02T21:05:59, try 5"
    assert match(prompt(old), prompt(new), rules)
    assert not match(prompt("Now 2026-11-18"), prompt("Now 2026"), rules)


DAY, LATER = "2026-11-18", "2026-11-19"
FOUND = changed(LONG, put(f"3 since {DAY}", "messages", 3, "content"))


def dated(*path: str | int) -> tuple[Json, Json]:
    return changed(LONG, put(f"x {DAY}", *path)), changed(LONG, put(f"x {LATER}", *path))


SYSTEM, RESULT = ("messages", 0, "content"), ("messages", 3, "content")
ABOUT = ("tools", 1, "function", "description")
PLACES: Sequence[tuple[str, tuple[str | int, ...], bool]] = (
    ("messages[0]", SYSTEM, True),
    ("messages[0].content", SYSTEM, True),
    ("messages[role=system].content", SYSTEM, True),
    ("messages[role=developer]", SYSTEM, True),
    ("messages[*]", SYSTEM, True),
    ("messages.*.content", SYSTEM, True),
    ("messages", SYSTEM, True),
    ("*", SYSTEM, True),
    ("messages[1]", SYSTEM, False),
    ("messages[role=user]", SYSTEM, False),
    ("messages[0].name", SYSTEM, False),
    ("messages[role=tool]", RESULT, True),
    ("messages[tool_call_id=call#1]", RESULT, True),
    ("messages[tool_call_id=call#2]", RESULT, False),
    ("tools", ABOUT, True),
    ("tools[*].function.description", ABOUT, True),
    ("tools[0].description", ABOUT, False),
    ("tools.buy", ABOUT, True),
    ('tools["buy"].description', ABOUT, True),
    ("session", ("session",), True),
)


@pytest.mark.parametrize(("place", "path", "reached"), PLACES)
def test_where_it_stands(place: str, path: tuple[str | int, ...], reached: bool) -> None:
    assert match(*dated(*path), masks({"at": place, "what": "date"})) is reached


def test_arguments_are_reached_as_values() -> None:
    rules = masks(
        {"at": "messages[role=assistant].tool_calls[*].function.arguments.day", "what": "date"},
        {"at": "messages[2]", "what": "number"},
    )

    def asked(day: str, count: str) -> Json:
        said = round_of(("a", "buy", f'{{"day": "{day}", "count": {count}}}', "ok"))
        return LONG | {"messages": [*LONG["messages"][:2], *said]}

    assert match(asked(DAY, "3"), asked(LATER, "4.5"), rules)
    assert not match(asked(DAY, "3"), asked(LATER, '"3"'), rules)
    assert not match(asked(DAY, "3"), asked(LATER, "true"), rules)


A, B, C = (f"3f2504e0-4f89-41d3-9a0c-0305e82c330{n}" for n in "abc")


def test_the_order_of_arguments_does_not_bind() -> None:
    rules = masks({"at": "messages", "what": "uuid"})

    def asked(arguments: str) -> Json:
        said = round_of(("a", "buy", arguments, "ok"))
        return LONG | {"messages": [*LONG["messages"][:2], *said]}

    recorded = asked(f'{{"a":"{A}","b":"{B}"}}')
    assert match(recorded, asked(f'{{"b":"{C}","a":"{B}"}}'), rules)
    assert not match(recorded, asked(f'{{"b":"{C}","a":"{C}"}}'), rules)


BOUND: Sequence[tuple[str, str, bool]] = (
    (f"{A} {A}", f"{B} {B}", True),
    (f"{A} {B}", f"{B} {C}", True),
    (f"{A} {B}", f"{B} {A}", True),
    (f"{A} {A}", f"{B} {C}", False),
    (f"{A} {B}", f"{C} {C}", False),
    (f"{A} {B} {A}", f"{B} {A} {A}", False),
)


@pytest.mark.parametrize(("old", "new", "equal"), BOUND)
def test_equal_values_stay_equal(old: str, new: str, equal: bool) -> None:
    rules = masks({"at": "messages", "what": "uuid"})
    assert match(prompt(old), prompt(new), rules) is equal
    split = [prompt(*text.split(" ", 1)) for text in (old, new)]
    assert match(split[0], split[1], rules) is equal


@pytest.mark.parametrize(("old", "new", "equal"), BOUND)
def test_secrets_are_alike_and_stay_equal(old: str, new: str, equal: bool) -> None:
    """Who recorded knew some of them by name; who replays knows only their shape."""
    named = {A: "[secret:KEY]", B: "[secret:OTHER]", C: "[secret]"}
    for value, secret in named.items():
        old, new = old.replace(value, secret), new.replace(value, secret)
    assert match(prompt(old), prompt(new)) is equal
    assert not match(prompt(f"{old}."), prompt(new))


def test_masks_of_all_places_add_up_and_the_nearest_wins() -> None:
    near = MatchRules(model="any", masks=(Mask("messages[0]", "date"),))
    far = read_rules(
        {"level": "strict", "repeats": "last", "mask": [{"at": "messages[1]", "what": "time"}]}, "f"
    )
    rules = combined(near, far, MatchRules(level="normal", masks=near.masks))
    assert (rules.level, rules.model, rules.repeats) == ("strict", "any", "last")
    assert rules.masks == (*near.masks, *far.masks)
    assert (combined().level, combined().repeats) == ("normal", "miss")
    old = prompt(f"It is {DAY}", "at 08:30") | {"model": "a"}
    new = prompt(f"It is {LATER}", "at 09:30") | {"model": "b"}
    assert match(old, new, rules)


def test_what_is_carried() -> None:
    rules = masks(
        {"at": "messages[role=tool]", "what": r"ORD-\d+", "carry": True},
        {"at": "messages", "what": r"ORD-\d+"},
        {"at": "messages[0]", "what": "date"},
    )

    def asked(order: str, day: str) -> Json:
        said = round_of(("a", "buy", '{"sku":"L-1"}', f"made {order}, not ORD-1"))
        return LONG | {"messages": [*prompt(day)["messages"], *said]}

    old, new = key(asked("ORD-55", DAY), rules), key(asked("ORD-77", LATER), rules)
    assert old == new
    assert substitutions(old, new) == (("ORD-55", "ORD-77"),)


MISTAKES: Sequence[tuple[Json, str]] = (
    ({"masks": []}, "'masks': no key of match. Did you mean 'mask'?"),
    ({"level": "lax"}, "'level': expected strict or normal or conversation, found 'lax'"),
    ({"model": "all"}, "'model': expected any, found 'all'"),
    ({"repeats": 1}, "'repeats': expected miss or last, found 1"),
    ({"models": {"a": 1}}, "'models': expected"),
    ({"models": {"a": "b", "b": "c"}}, "'models': 'b' is both asked and recorded"),
    ({"mask": {"at": "x"}}, "'mask': expected a list"),
    ({"mask": ["date"]}, "'mask[0]': expected the keys at, what, carry"),
    ({"mask": [{"at": "*", "waht": "date"}]}, "'waht': no key of mask[0]. Did you mean 'what'?"),
    ({"mask": [{"at": "*"}]}, "'mask[0].what': expected a text"),
    ({"mask": [{"at": "messages[", "what": "date"}]}, "'mask[0].at': '[' at character 9 is no"),
    ({"mask": [{"at": "a..b", "what": "date"}]}, "'mask[0].at': '..b' at character 2 is no"),
    ({"mask": [{"at": ".a", "what": "date"}]}, "'mask[0].at': '.a' at character 1 is no step"),
    ({"mask": [{"at": "*", "what": "dates"}]}, "Did you mean 'date'?"),
    ({"mask": [{"at": "*", "what": "T-(\\d"}]}, "is no pattern: missing )"),
    ({"mask": [{"at": "*", "what": "x" * 501}]}, "expected a text of 1 to 500 characters"),
    ({"mask": [{"at": "*", "what": "uuid", "carry": "yes"}]}, "'mask[0].carry': expected true"),
)


@pytest.mark.parametrize(("found", "text"), MISTAKES)
def test_a_mistake_is_named(found: Json, text: str) -> None:
    with pytest.raises(UnreadableCassette) as caught:
        read_rules(found, "cassettes/match.toml")
    assert str(caught.value).startswith("cassettes/match.toml: ")
    assert text in str(caught.value)


def test_a_text_without_end_is_masked_at_its_beginning() -> None:
    rules = masks({"at": "messages[0]", "what": r"\d{4}"})
    filler = "x " * 200_000
    assert match(prompt("2026" + filler), prompt("2027" + filler), rules)
    assert not match(prompt(filler + "2026"), prompt(filler + "2027"), rules)
