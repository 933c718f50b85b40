"""The command line as people use it: what it prints, and with which code it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from middleware import __version__
from middleware.__main__ import main
from middleware.cli.command import FINE, LACKING, WRONG
from tests.cli.running import REQUEST, run
from tests.support.paths import ROOT


def test_help_shows_every_command_and_loads_nothing_heavy() -> None:
    program = (
        "import sys, middleware.__main__ as line\n"
        "try: line.main(['--help'])\n"
        "except SystemExit: print(*{'aiohttp', 'pydantic', 'uvicorn', 'orjson'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    *text, loaded = done.stdout.splitlines()
    assert loaded == ""
    for command in ("serve", "check", "explain", "last", "models"):
        assert re.search(rf"^    {command} +\w", "\n".join(text), re.MULTILINE)


@pytest.mark.parametrize("command", ["serve", "check", "explain", "last", "models"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == FINE
    assert "--config" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"usetool {__version__}\n"


# explain ---------------------------------------------------------------------------------------


def test_explain_prints_the_call_and_the_receipt(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "request.json"]) == FINE
    first, *body, title, note = capsys.readouterr().out.splitlines()
    assert first == "1. open: POST http://127.0.0.1:1/v1/chat/completions"
    assert '  "model": "plain-1",' in body
    assert '      "content": "你好"' in body
    assert '"stream": true' not in "".join(body)
    assert (title, note) == ("receipt", "  dropped_by_config  user  the gateway's config drops it")


def test_explain_needs_no_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--model", "locked-x", "--stream", "request.json"]) == FINE
    said = capsys.readouterr().out
    assert '"model": "x"' in said
    assert '"stream": true' in said
    assert "not-set" not in said
    assert said.endswith("receipt: nothing was changed or lost\n")


@pytest.mark.parametrize(
    ("request_text", "told"),
    [
        (REQUEST.replace("plain", "plian"), "404 model_not_found"),
        ('{"model": "plain", "messages": []}', "400 "),
        ("{", "400 invalid_json"),
        ("[]", "400 invalid_type"),
    ],
)  # fmt: skip
def test_explain_tells_a_refusal(
    request_text: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "request.json").write_text(request_text, "utf-8")
    assert main(["explain", "request.json"]) == LACKING
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(told)


def test_explain_of_a_file_that_is_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "none.json"]) == WRONG
    assert capsys.readouterr().err == "none.json: cannot be read: No such file or directory\n"


def test_explain_reads_standard_input(folder: Path) -> None:
    done = run("explain", "--config", str(folder / "config.toml"), "-", stdin=REQUEST)
    assert done.returncode == FINE, done.stderr
    assert '"plain-1"' in done.stdout


def test_explain_keeps_large_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = REQUEST.replace('"user": "u"', '"seed": 9007199254740993')
    (folder / "request.json").write_text(request, "utf-8")
    main(["explain", "request.json"])
    assert '"seed": 9007199254740993' in capsys.readouterr().out
