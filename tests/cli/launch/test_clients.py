"""What a client is told: the same that the page about clients says."""

from __future__ import annotations

import re
import tomllib

import pytest

from middleware.cli.launch.clients import launched
from tests.support.paths import ROOT

BASE = "http://127.0.0.1:8000"
PAGES = ("docs/clients.md", "docs/clients.zh-CN.md")


def block(path: str, heading: str) -> str:
    """The first block of a section."""
    text = (ROOT / path).read_text("utf-8").partition(f"\n## {heading}\n")[2]
    found = re.search(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("path", PAGES)
def test_codex_is_told_what_the_page_says(path: str) -> None:
    (client, *told), environment = launched("/opt/codex", BASE, "sonnet", {})
    assert (client, told[::2]) == ("/opt/codex", ["-c"] * (len(told) // 2))
    assert tomllib.loads("\n".join(told[1::2])) == tomllib.loads(block(path, "Codex"))
    assert environment["USETOOL_KEY"]


@pytest.mark.parametrize("path", PAGES)
def test_claude_code_is_told_what_the_page_says(path: str) -> None:
    command, environment = launched("claude", BASE, "sonnet", {"ANTHROPIC_API_KEY": "sk"})
    said = dict(re.findall(r"^export (\w+)=(\S+)$", block(path, "Claude Code"), re.MULTILINE))
    assert command == ["claude"]
    assert said.items() <= environment.items()
    assert "ANTHROPIC_API_KEY" not in environment


def test_any_other_command_finds_every_protocol_and_no_key_of_its_own() -> None:
    outer = {"PATH": "/bin", "OPENAI_API_KEY": "sk-real", "no_proxy": "a.example"}
    command, environment = launched("app", BASE, "sonnet", outer)
    assert command == ["app"]
    assert (
        environment.items()
        >= {
            "PATH": "/bin",
            "OPENAI_BASE_URL": f"{BASE}/v1",
            "ANTHROPIC_BASE_URL": BASE,
            "OLLAMA_HOST": BASE,
            "OPENAI_API_KEY": "none",
            "NO_PROXY": "a.example,127.0.0.1",
        }.items()
    )
