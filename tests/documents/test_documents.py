"""What the documents say is so: files, commands, keys and codes they name are there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from adapters import receipts
from middleware import config
from middleware.__main__ import main
from middleware.cli import describe
from middleware.cli.chat.gateway import running
from middleware.cli.endpoint import GatewayAddress
from middleware.config.keys import SECTIONS, ability_keys, option_keys
from middleware.config.reference import reference
from tests.support.paths import ROOT

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "README.zh-CN.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PAIRS = [
    ("README.md", "README.zh-CN.md"),
    *((f"docs/{page}.md", f"docs/{page}.zh-CN.md") for page in ("dify", "cassettes", "clients")),
]
OWN = [
    ROOT / "docs/operating.md",
    *(ROOT / path for pair in PAIRS[1:] for path in pair),
]


def text(path: Path | str) -> str:
    return (ROOT / path).read_text("utf-8")


def blocks(words: str, language: str = r"\w*") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", words, re.MULTILINE | re.DOTALL)


def prose(words: str) -> str:
    return re.sub(r"^```.*?^```$", "", words, flags=re.MULTILINE | re.DOTALL)


def headings(words: str) -> list[str]:
    return [found[0] for found in re.findall(r"^(#+) (.+)$", prose(words), re.MULTILINE)]


def rows(words: str) -> list[int]:
    """How many cells each line of a table has."""
    lines = [line for line in prose(words).splitlines() if line.startswith("|")]
    return [line.replace("\\|", "").count("|") for line in lines]


def codes(words: str) -> list[str]:
    return sorted(re.findall(r"`([^`\n]+)`", prose(words)))


@cache
def source() -> str:
    paths = [
        path for folder in ("adapters", "middleware") for path in (ROOT / folder).rglob("*.py")
    ]
    return "\n".join(path.read_text("utf-8") for path in paths)


# The reference ---------------------------------------------------------------------------------


def test_the_reference_is_what_the_table_of_keys_says() -> None:
    written = text("docs/config.md")
    assert written == reference(), "python -m middleware.config.reference > docs/config.md"


def test_the_list_of_receipts_is_what_is_declared() -> None:
    written = text("docs/receipts.md")
    assert written == receipts.reference(), "python -m adapters.receipts > docs/receipts.md"


def test_the_reference_has_every_key_of_every_section() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", reference(), re.MULTILINE))
    every = [*SECTIONS.values(), option_keys(""), ability_keys("")]
    assert {name for keys in every for name in keys} <= named | {"timeouts"}


def test_the_reference_is_printed_with_the_same_bytes_everywhere() -> None:
    command = [sys.executable, "-m", "middleware.config.reference"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == reference().encode()


# Both languages --------------------------------------------------------------------------------


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_say_the_same(english: str, chinese: str) -> None:
    first, second = text(english), text(chinese)
    assert headings(first) == headings(second)
    assert blocks(first) == blocks(second)
    assert rows(first) == rows(second)


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_what_is_code_is_the_same_in_both_languages(english: str, chinese: str) -> None:
    assert codes(text(english)) == codes(text(chinese))


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_links_lead_to_the_same_in_both_languages(english: str, chinese: str) -> None:
    def places(words: str) -> list[str]:
        return sorted(re.sub(r"\.zh-CN", "", link) for link in links(words))

    assert places(text(english)) == places(text(chinese))


# Facts -----------------------------------------------------------------------------------------


def links(words: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)#]+)", prose(words)) if "://" not in link]


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    for link in links(path.read_text("utf-8")):
        assert (path.parent / link).exists(), link
    for named in re.findall(r"--file (\S+)", path.read_text("utf-8")):
        assert (ROOT / named).is_file(), named


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_code_that_is_named_is_one_we_send(path: Path) -> None:
    named = set(re.findall(r"\b[45]\d\d `(\w+)`", path.read_text("utf-8")))
    assert named
    for code in named:
        assert f'"{code}"' in source(), code


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_command_that_is_named_exists(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = set(re.findall(r"usetool (serve|check|last|models|chat|\w+)((?: --[\w-]+)*)",
                           path.read_text("utf-8")))  # fmt: skip
    assert found
    for command, options in found:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
        helped = capsys.readouterr().out
        for option in options.split():
            assert option in helped, (command, option)


@pytest.mark.parametrize("path", ["docs/dify.md", "docs/dify.zh-CN.md"])
def test_the_addresses_are_those_check_prints(path: str) -> None:
    demo = '[server]\nhost = "0.0.0.0"\nkeys = ["k"]\n' + whole("")
    printed = re.findall(
        r"http://\S+", describe.from_docker(config.parse(demo, environment={}).server)
    )
    assert len(printed) == 4
    for address in printed:
        assert f"`{address.replace('THIS-MACHINE', 'HOST')}`" in text(path)


_CONTEXT = """
[upstreams.openai]
kind = "compatible"
base_url = "https://api.openai.com/v1"
[models.some]
upstream = "openai"
"""


def whole(block: str) -> str:
    """A piece of config with what it may take for granted."""
    return block if "[upstreams.openai]" in block else _CONTEXT + block


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_piece_of_config_is_valid(path: Path) -> None:
    for block in blocks(path.read_text("utf-8"), "toml"):
        given = {name: name for name in re.findall(r'"env:(\w+)"', block)}
        found = config.parse(whole(block), environment=given)
        assert found.models
        assert tomllib.loads(block)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_piece_of_python_is_valid(path: Path) -> None:
    for block in blocks(path.read_text("utf-8"), "python"):
        ast.parse(block)


def test_the_shown_model_info_is_what_the_gateway_says_of_demo() -> None:
    shown = re.search(r"model_info=(\{.*?\}),\n\)", text("docs/clients.md"), re.DOTALL)
    assert shown
    demo = (
        '[recall]\nstore = "off"\n[upstreams.d]\nkind = "scripted"\n[models.demo]\nupstream = "d"'
    )
    with running(config.parse(demo, environment={}), lambda _: None) as endpoint:
        said = GatewayAddress(endpoint.url).get("/models/demo")
    assert ast.literal_eval(shown[1]) == said["x_usetool"]["model_info"]
