"""The rules of the house hold, and each of them sees a breach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.house.class_rules import deep_classes, untyped_members
from tests.house.import_rules import import_cycles, named_doors, shadowing_names, upward_imports
from tests.house.kind_rules import named_kinds
from tests.house.module_rules import (
    broad_handlers,
    doubles,
    long_files,
    missing_annotations,
    missing_docstrings,
    mutable_state,
    second_loops,
    too_many_suppressions,
    unreasoned_suppressions,
)
from tests.house.name_rules import dead_names, full_folders, participles, twin_classes
from tests.house.receipt_rules import receipt_codes
from tests.house.source import OURS, TESTS, Module, Rule
from tests.house.type_rules import loose_types

# Each rule with a breach: path → source. They are texts, only ever parsed: a rule that finds
# nothing wrong in its breach finds nothing anywhere.
RULES: Sequence[tuple[Rule, Mapping[str, str]]] = (
    (long_files, {"adapters/x.py": "x = 1\n" * 351}),
    (second_loops, {"middleware/server/x.py": "asyncio.run(f())"}),
    (missing_docstrings, {"adapters/x.py": "x = 1"}),
    (missing_annotations, {"adapters/x.py": "def f(a: int): pass"}),
    (missing_annotations, {"adapters/x.py": "async def f(*a) -> None: pass"}),
    (broad_handlers, {"adapters/x.py": "try: f()\nexcept: pass"}),
    (broad_handlers, {"adapters/x.py": "try: f()\nexcept (KeyError, Exception): pass"}),
    (broad_handlers, {"adapters/x.py": "with contextlib.suppress(Exception): f()"}),
    (deep_classes, {"adapters/x.py": "class A(B): pass\nclass C(A): pass\nclass D(C): pass"}),
    (
        untyped_members,
        {"adapters/x.py": "class A(Leaf):\n def may(self): getattr(self.inner, 'may', None)"},
    ),
    (untyped_members, {"adapters/x.py": "@runtime_checkable\nclass A(Protocol): pass"}),
    (mutable_state, {"adapters/x.py": "x = {}"}),
    (mutable_state, {"adapters/x.py": "if a:\n x: dict[str, int] = dict()"}),
    (mutable_state, {"adapters/x.py": "def f():\n global x"}),
    (unreasoned_suppressions, {"adapters/x.py": "x  # type: ignore[misc]"}),
    (unreasoned_suppressions, {"adapters/x.py": "x  # noqa"}),
    (too_many_suppressions, {"adapters/x.py": "x  # noqa: E501  # a reason\n" * 4}),
    (upward_imports, {"adapters/x.py": "from middleware import app"}),
    (named_doors, {"middleware/x.py": "from middleware.doors.chat import parse"}),
    (named_doors, {"middleware/x.py": "from middleware.doors import CHAT_DOOR"}),
    (named_kinds, {"middleware/x.py": "if kind == 'claude': pass"}),
    (named_kinds, {"middleware/x.py": "from adapters.ollama.encode import encode"}),
    (import_cycles, {"adapters/x.py": "from .y import f", "adapters/y.py": "import adapters.x"}),
    (shadowing_names, {"adapters/openai.py": ""}),
    (twin_classes, {"adapters/x.py": "class A: pass", "adapters/y.py": "class A: pass"}),
    (participles, {"adapters/kept.py": ""}),
    (participles, {"adapters/telling.py": ""}),
    (full_folders, {f"adapters/x{at}.py": "" for at in range(16)}),
    (dead_names, {"adapters/x.py": "def f(): g()\ndef g(): pass"}),
    (loose_types, {"middleware/x.py": "def f(a: Any, b: int) -> list[Json]: pass"}),
    (receipt_codes, {"adapters/receipts.py": 'Told = Literal["a"]', "adapters/x.py": "'b'"}),
    (receipt_codes, {"adapters/x.py": "note('a', 'field', 'text')"}),
)


# Breaches of the rule against doubles, as texts too.
DOUBLES: Sequence[str] = (
    "from unittest import mock",
    "import unittest.mock",
    "MagicMock()",
    "monkeypatch.setattr(a, 'b', 1)",
    "mocker.patch('a')",
)


def name_of(value: object) -> str:
    return getattr(value, "__name__", "breach")


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=name_of)
def test_rule_holds(rule: Rule) -> None:
    breaches = list(rule(OURS))
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize(("rule", "breach"), RULES, ids=name_of)
def test_rule_sees_a_breach(rule: Rule, breach: Mapping[str, str]) -> None:
    assert list(rule([Module(path, source) for path, source in breach.items()]))


def test_tests_patch_nothing() -> None:
    breaches = list(doubles(TESTS))
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize("rule", [long_files, full_folders], ids=name_of)
def test_rule_holds_for_tests_too(rule: Rule) -> None:
    breaches = list(rule(TESTS))
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize("source", DOUBLES)
def test_patching_is_seen(source: str) -> None:
    assert list(doubles([Module("tests/test_x.py", source)]))
