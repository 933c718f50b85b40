"""Images and sounds beside a cassette: once each, checked when read, gone when unused."""

from __future__ import annotations

import base64
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from middleware.cassettes.cassette import Cassette, RecordedAnswer
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file import cassette_text, read_cassette, write_cassette
from middleware.cassettes.file.sides import LEAST, SidesIn, SidesOut
from tests.cassette.turns import CASSETTE, again, asked, sent, turn

BYTES = random.Random(1).randbytes(300_000)
DIGEST = sha256(BYTES).hexdigest()
CODED = base64.b64encode(BYTES).decode()
URL = f"data:image/png;base64,{CODED}"


def see(url: str) -> dict[str, Any]:
    image = {"type": "image_url", "image_url": {"url": url}}
    return {"model": "m", "messages": [{"role": "user", "content": [image]}]}


def test_an_image_is_written_once(tmp_path: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": CODED}
    answer = RecordedAnswer(body={"data": [{"b64_json": CODED}]})
    turns = (
        turn(1, see(URL), exchanges=(sent({"messages": [{"content": [source]}]}),), answer=answer),
        turn(2, {**see(URL), "n": 1}),
    )
    assert again(tmp_path / "c.yaml", Cassette(turns)) == Cassette(turns)
    assert [one.name for one in (tmp_path / "c.files").iterdir()] == [f"{DIGEST}.png"]
    assert (tmp_path / f"c.files/{DIGEST}.png").read_bytes() == BYTES
    text = (tmp_path / "c.yaml").read_text()
    assert len(text) < 2000
    assert f"sha256:{DIGEST}" in text


def out(value: Any) -> tuple[Any, dict[str, bytes]]:
    sides = SidesOut()
    return sides.without(value), sides.files


STAY = {
    "small": "data:image/png;base64," + base64.b64encode(BYTES[: LEAST - 1]).decode(),
    "a long word": "a" * 20_000,
    "text": "It is cold. " * 1000,
    "hex": BYTES[:8000].hex(),
    "not as we write it": URL + "\n",
    "wrong bits at the end": base64.b64encode(BYTES[:4096]).decode()[:-3] + "B==",
    "other letters": "é" + CODED[1:],
    "an address": "https://a.test/" + CODED,
}


@pytest.mark.parametrize("case", STAY)
def test_what_stays_in_the_cassette(case: str) -> None:
    assert out([{"x": STAY[case]}]) == ([{"x": STAY[case]}], {})


def test_types_are_endings() -> None:
    endings = {
        "image/svg+xml": "svg",
        "audio/wav": "wav",
        "": "bin",
        "a/../b": "bin",
        "x/y-z;q=1": "y",
    }
    for at, kind in enumerate(endings):
        coded = base64.b64encode(BYTES[at:]).decode()
        said, files = out(f"data:{kind};base64,{coded}")
        assert said["type"] == kind
        assert list(files) == [f"{sha256(BYTES[at:]).hexdigest()}.{endings[kind]}"]


def test_a_clients_own_map_that_looks_like_one(tmp_path: Path) -> None:
    mark = {"file": f"sha256:{DIGEST}", "type": "image/png", "bytes": 3}
    for own in (mark, {"file": "sha256:"}, {"file": f"sha256:sha256:{DIGEST}"}, {"file": "x"}):
        cassette = Cassette((turn(1, asked("x", own=[own])),), facts=({"own": own},))
        assert again(tmp_path / "c.yaml", cassette) == cassette


def test_without_a_file_none_is_looked_for() -> None:
    value = {"a": [1, "x", None, {"file": "f"}]}
    assert SidesIn(Path("/nowhere")).within(value) == value


def wrong(path: Path) -> str:
    with pytest.raises(UnreadableCassette) as caught:
        read_cassette(path)
    assert "expected" in str(caught.value)
    return str(caught.value)


def test_a_missing_or_altered_file_is_named(tmp_path: Path) -> None:
    path, side = tmp_path / "c.yaml", tmp_path / f"c.files/{DIGEST}.png"
    write_cassette(path, cassette_text(Cassette((turn(1, see(URL)),))))
    side.write_bytes(b"x" + BYTES[1:])
    assert f"c.files/{DIGEST}.png was changed" in wrong(path)
    side.write_bytes(BYTES[1:])
    assert f"c.files/{DIGEST}.png was changed" in wrong(path)
    side.unlink()
    assert f"c.files/{DIGEST} is missing" in wrong(path)
    text = path.read_text()
    path.write_text(text.replace(DIGEST, "../../etc/passwd"))
    assert "expected sha256: and 64 digits" in wrong(path)
    path.write_text(text.replace("type:", "kind:"))
    assert "unknown key 'kind'" in wrong(path)


def test_what_no_turn_needs_is_removed(tmp_path: Path) -> None:
    path, folder = tmp_path / "c.yaml", tmp_path / "c.files"
    write_cassette(path, cassette_text(Cassette((turn(1, see(URL)),))))
    (folder / "notes.txt").write_text("mine")
    write_cassette(path, cassette_text(CASSETTE))
    assert [one.name for one in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    write_cassette(path, cassette_text(CASSETTE))
    assert not folder.exists()


def test_nothing_is_written_by_making_the_text() -> None:
    made = cassette_text(Cassette((turn(1, see(URL)),)))
    assert made.sides == {f"{DIGEST}.png": BYTES}
    assert CODED[:100].encode() not in made.text
