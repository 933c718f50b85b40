"""Names of cassettes: which are taken, that none leaves the folder, names made of any text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from middleware.cassettes.errors import CassetteRefused
from middleware.cassettes.names import CassetteName, file_of, name_from, path_of, read_name

GOOD = ("t", "shop-bot", "a/b", "a.b_c-1/d", "沈阳", "हिन्दी", "A", "default", "v2/apis", "1", ".a")
BAD = (
    *(
        "",
        "/",
        "/etc",
        "a/",
        "a//b",
        "..",
        "../x",
        "a/../b",
        "a/.",
        ".",
        "a\\b",
        "C:/a",
        "a b",
        "a\nb",
    ),
    *(
        "a\x00",
        "~a",
        "a~b",
        "v1",
        "a/v1",
        "api/x",
        "a?b",
        "a%2fb",
        "a:b",
        "😀",
        "a\u200bb",
        "a.",
        "...",
    ),
    *("shop.files/a", "shop.faults", "x" * 151, "/".join(["x" * 100] * 7), "\ud83d"),
)


@pytest.mark.parametrize("name", GOOD)
def test_a_name_is_a_file_in_the_folder(name: str, tmp_path: Path) -> None:
    assert path_of(tmp_path, name) == tmp_path / f"{name}.yaml"
    assert read_name(name) == CassetteName(name)
    assert read_name(f"{name}@s1") == CassetteName(name, "s1")


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_name(name: str, tmp_path: Path) -> None:
    for refused in (
        read_name,
        lambda text: path_of(tmp_path, text),
        lambda text: read_name(f"{text}@s"),
    ):
        with pytest.raises(CassetteRefused) as caught:
            refused(name)
        assert (caught.value.status, caught.value.code) == (400, "cassette_name")


@pytest.mark.parametrize("text", ["a@", "a@b@c", "@s", "a@..", "a@s t"])
def test_what_is_no_session(text: str) -> None:
    with pytest.raises(CassetteRefused):
        read_name(text)


def test_one_name_in_two_spellings(tmp_path: Path) -> None:
    assert path_of(tmp_path, "cafe\u0301") == path_of(tmp_path, "café")
    (tmp_path / "cafe\u0301.yaml").touch()  # as some disks give it back
    assert path_of(tmp_path, "café").name == "café.yaml"


def test_links_stay_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "cassettes"
    folder.mkdir()
    (tmp_path / "secret.yaml").touch()
    (folder / "real.yaml").touch()
    links = {
        "out": tmp_path / "secret.yaml",
        "loop": folder / "loop.yaml",
        "gone": tmp_path / "nothing.yaml",
        "in": folder / "real.yaml",
    }
    for name, target in links.items():
        (folder / f"{name}.yaml").symlink_to(target)
    (folder / "away").symlink_to(tmp_path)
    (folder / "side.files").symlink_to(tmp_path)
    for name in ("out", "loop", "gone", "away/secret", "side"):
        with pytest.raises(CassetteRefused, match="leaves the folder"):
            path_of(folder, name)
    assert path_of(folder, "in") == folder / "in.yaml"


def test_the_folder_itself_may_be_a_link_or_absent(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert path_of(tmp_path / "link", "a/b") == tmp_path / "link/a/b.yaml"
    assert path_of(tmp_path / "none", "a/b") == tmp_path / "none/a/b.yaml"


def test_commands_take_a_name_or_a_file(tmp_path: Path) -> None:
    assert file_of(tmp_path, "a/b") == tmp_path / "a/b.yaml"
    assert file_of(tmp_path, "../x y.yaml") == Path("../x y.yaml")
    with pytest.raises(CassetteRefused):
        file_of(tmp_path, "../x")


READABLE = {
    "test_agent.py::test_rain": "test_agent/test_rain",
    "tests/a/test_agent.py::test_rain[snow]": "tests/a/test_agent/test_rain-snow",
    "test_agent.py::test_named[沈阳]": "test_agent/test_named-沈阳",
}
MADE = {
    "test_agent.py::test_named[a/b]": "test_agent/test_named-a/b--",
    "test_agent.py::TestRain::test_it[x y:z]": "test_agent/TestRain/test_it-x-y-z--",
    "..": "text--",
    "": "text--",
    "a/v1/api": "a--",
}


def test_tests_have_names_that_say_which() -> None:
    assert {text: name_from(text) for text in READABLE} == READABLE
    assert all(name_from(text).startswith(name) for text, name in MADE.items())


PARTS = st.sampled_from(
    [*"aAbé/.-_[]: ~", "a.py::", "::", "test_a", "..", "v1", "--", "e\u0301", "\ud83d", "x" * 300]
)


@given(st.lists(PARTS, max_size=6).map("".join), st.lists(PARTS, max_size=6).map("".join))
@example("a.py::b::c", "a/b.py::c")
@example("a.py::b[c]", "a.py::b-c")
@example("a.py::b", "A.py::b")
@example("a.py::b", "a/b")
@example("x.files/a.", "x.files/a")
@example("𠀀" * 300 + "/" + "y" * 29 + "..", "")
def test_texts_that_differ_have_names_that_differ(one: str, other: str) -> None:
    names = name_from(one), name_from(other)
    assert all(read_name(name).name == name for name in names)
    assert (one == other) == (names[0].casefold() == names[1].casefold())
