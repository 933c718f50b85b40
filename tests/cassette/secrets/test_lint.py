"""Values that look born today are told with the rule that allows others."""

from __future__ import annotations

import pytest

from middleware.cassettes.lint import Lint, lint
from middleware.cassettes.match.masks import masked
from middleware.cassettes.match.rules import read_rules
from middleware.cassettes.match.values import Form

OWN = ("/home/anna", "/srv/app")
TOOL = "tools.f.description"
UUID, ULID = "550e8400-e29b-41d4-a716-446655440000", "01HF7YAT00VBG2CSDPM5H9QXYZ"


def found(text: str) -> list[tuple[str, str]]:
    ask: Form = {"messages": [{"role": "system", "content": text}]}
    return [(one.what, one.value) for one in lint([ask], "2026-11-08", OWN)]


@pytest.mark.parametrize(
    "text",
    [
        *("2026-11-08", "08.11.2026", "8.11.2026", "11/08/2026", "8/11/2026", "2026/11/08"),
        *("2026年11月8日", "8 November 2026", "Nov 8, 2026", "Sunday, November 8th, 2026"),
    ],
)
def test_the_day_in_every_form(text: str) -> None:
    assert found(f"Today is {text}.") == [("date", text)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("It is 2026-11-08T14:05:09Z.", "datetime", "2026-11-08T14:05:09Z"),
        ("It is 2026-11-08 14:05", "datetime", "2026-11-08 14:05"),
        ("It is 14:05:09", "time", "14:05:09"),
        (f"id {UUID}.", "uuid", UUID),
        (f"id {ULID}.", "ulid", ULID),
        ("trace 0af7651916cd43dd8448eb211c80319c", "hex", "0af7651916cd43dd8448eb211c80319c"),
        ("in /tmp/pytest-of-anna/x.txt", "path", "/tmp/pytest-of-anna/x.txt"),
        (r"in C:\Users\x\AppData\Local\Temp\y", "path", r"C:\Users\x\AppData\Local\Temp\y"),
        ("in /var/folders/zz/T/x", "path", "/var/folders/zz/T/x"),
        ("cwd: /srv/app/src", "path", "/srv/app/src"),
        ("/home/anna/.claude", "path", "/home/anna/.claude"),
        ("at http://127.0.0.1:53211/v1", "port", "53211"),
        ("Sun Nov  8 14:05:09 2026", "datetime", "Sun Nov  8 14:05:09 2026"),
        ("2026-11-08T14:05:09.123+08:00", "datetime", "2026-11-08T14:05:09.123+08:00"),
    ],
)
def test_kinds(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "Founded 2026-11-07, closed 2019-11-08, due 2026-12-08T10:00:00",
        "Open 9:00 to 17:30, version 1.2.3, commit 1a2b3c4d",
        "See /etc/passwd, /usr/bin/python3 and https://example.com:8443/tmp",
        "order 1234567890123456",
    ],
)
def test_what_was_there_before_today(text: str) -> None:
    assert found(text) == []


def test_a_time_beside_the_day_is_of_now() -> None:
    assert found("Date: 2026-11-08\nTime: 14:05") == [("date", "2026-11-08"), ("time", "14:05")]


def test_each_once_where_a_mask_of_it_goes() -> None:
    ask: Form = {
        "model": "m",
        "messages": [
            {"role": "system", "content": f"2026-11-08 {UUID} 2026-11-08"},
            {"role": "user", "content": [{"type": "text", "text": "2026-11-08"}]},
            {"role": "assistant", "content": "2026-11-08"},
            {"role": "tool", "tool_call_id": "call#1", "content": UUID},
            {"role": "tool", "tool_call_id": "call#2", "content": UUID},
            None,
        ],
        "tools": {"f": {"description": "as of 2026-11-08"}},
        "input": ["2026-11-08"],
    }
    assert lint([ask, ask], "2026-11-08", OWN) == (
        Lint("messages[0]", "date", "2026-11-08", "{at: 'messages[0]', what: date}"),
        Lint("messages[0]", "uuid", UUID, "{at: 'messages[0]', what: uuid}"),
        Lint("messages[1]", "date", "2026-11-08", "{at: 'messages[1]', what: date}"),
        Lint("messages[role=tool]", "uuid", UUID, "{at: 'messages[role=tool]', what: uuid}"),
        Lint(TOOL, "date", "2026-11-08", f"{{at: '{TOOL}', what: date}}"),
        Lint("input[0]", "date", "2026-11-08", "{at: 'input[0]', what: date}"),
    )


def test_the_rules_hide_what_they_are_for() -> None:
    text = f"2026-11-08T14:05:09 {UUID} in /tmp/x/y at localhost:53211 14:06:00"
    ask: Form = {"messages": [{"role": "system", "content": text}]}
    rules = [{"at": it.at, "what": it.what} for it in lint([ask], "2026-11-08", ())]
    assert len(rules) == 5
    form, _ = masked(ask, read_rules({"mask": rules}, "match.toml").masks)
    assert lint([form], "2026-11-08", ()) == ()
