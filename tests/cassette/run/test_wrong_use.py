"""What a command is told: where it looks, and what cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from middleware.__main__ import main
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.file import cassette_text, write_cassette

TURN = CassetteTurn(1, {"model": "m", "messages": []}, RecordedAnswer())


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "t", "--timing", "soon", "--", "true"),
        ("replay", "a b", "--", "true"),
        ("record", "t", "--check", "--allow-live"),
    ],
)
def test_what_cannot_be_meant_ends_with_two(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments]) == 2
    assert capsys.readouterr().err


def test_commands_look_where_the_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cassette(tmp_path / "taped/t.yaml", cassette_text(Cassette((TURN,))))
    monkeypatch.chdir(tmp_path)
    assert main(["cassette", "ls"]) == 0
    assert "No cassettes" in capsys.readouterr().out
    (tmp_path / "config.toml").write_text('[cassettes]\nfolder = "taped"\n')
    assert main(["cassette", "ls"]) == 0
    assert "1 turns" in capsys.readouterr().out
