"""`usetool pull` against a hub on a loopback port: whole and right, or not there."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.local import files
from middleware.__main__ import main
from middleware.cli.pull import naming, transfer, web
from middleware.cli.pull.screen import Bar
from tests.support.upstreams.hub import GGUF, Hub, serving

NAME = "owner/repo-GGUF:small.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for variable in ("http_proxy", "HTTP_PROXY", "HF_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(Hub()) as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        yield found


def fetched(name: str = NAME) -> tuple[Path, str]:
    screen = io.StringIO()
    return transfer.pull(naming.find(name), Bar(screen), pause=0).path, screen.getvalue()


def failure(name: str = NAME) -> str:
    with pytest.raises(web.PullFailed) as raised:
        fetched(name)
    return str(raised.value)


def left() -> list[str]:
    """Names of all files below the folder of models."""
    return sorted(path.name for path in files.folder().rglob("*") if path.is_file())


# Whole and right --------------------------------------------------------------------------------


def test_a_file_of_the_hub_is_fetched_checked_and_named(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", NAME]) == 0
    path = tmp_path / "usetool" / "models" / "owner" / "repo-GGUF" / "small.gguf"
    assert path.read_bytes() == GGUF
    assert left() == ["small.gguf"]
    said = capsys.readouterr()
    assert "its sha256 is right" in said.out
    config = tomllib.loads(said.out.partition("name it:\n")[2])
    assert config["models"]["small"]["path"] == str(path)
    assert "\r" not in said.err  # no bar where no terminal is


def test_what_is_there_already_is_not_fetched_again_but_is_the_newest(hub: Hub) -> None:
    first, _ = fetched()
    other, _ = fetched("owner/repo-GGUF:other.gguf")
    assert files.pulled() == other
    hub.asked.clear()
    assert fetched()[0] == first
    assert files.pulled() == first
    assert not hub.bodies()


def test_another_version_takes_the_place_of_the_old(hub: Hub) -> None:
    fetched()
    hub.content = GGUF + b"more"
    path, _ = fetched()
    assert path.read_bytes() == hub.content
    assert left() == ["small.gguf"]


def test_a_transfer_that_breaks_off_goes_on_by_itself(hub: Hub) -> None:
    hub.breaks = [1000, 5000]
    path, said = fetched()
    assert path.read_bytes() == GGUF
    assert [headers.get("range") for headers in hub.bodies()] == [
        None,
        "bytes=1000-",
        "bytes=6000-",
    ]
    assert "broke off after 0.0 MB; trying again" in said
    assert "going on with small.gguf" in said


def test_it_gives_up_where_nothing_more_comes_and_goes_on_when_asked_again(hub: Hub) -> None:
    hub.breaks = [500_000, 0, 0, 0, 0, 0]
    assert "The same command goes on from here" in failure()
    hub.breaks, hub.asked = [], []
    assert fetched()[0].read_bytes() == GGUF
    assert [headers.get("range") for headers in hub.bodies()] == ["bytes=500000-"]


def test_pieces_of_two_versions_never_meet(hub: Hub) -> None:
    hub.breaks = [500_000, 0, 0, 0, 0, 0]
    failure()
    hub.content = b"GGUF" + bytes(len(GGUF) - 4)
    hub.breaks = []
    assert fetched()[0].read_bytes() == hub.content
    assert left() == ["small.gguf"]


def test_a_server_without_ranges_gives_the_whole_again(hub: Hub) -> None:
    hub.breaks, hub.ranges = [500_000], False
    assert fetched()[0].read_bytes() == GGUF


def test_a_url_is_resumed_by_its_etag_and_says_that_nothing_was_checked(hub: Hub) -> None:
    hub.breaks = [500_000]
    source = naming.find(f"{hub.cdn}/files/small.gguf?key=1")
    done = transfer.pull(source, Bar(io.StringIO()), pause=0)
    assert done.path.read_bytes() == GGUF
    assert done.path.parent.name == "127.0.0.1"
    assert hub.bodies()[-1]["if-range"] == '"v1"'
    assert "no sha256 to check" in transfer.told(done)


def test_a_url_without_a_version_begins_anew(hub: Hub) -> None:
    hub.breaks, hub.etag = [500_000], ""
    assert fetched(f"{hub.cdn}/small.gguf")[0].read_bytes() == GGUF
    assert "range" not in hub.bodies()[-1]


# Not there --------------------------------------------------------------------------------------


def test_what_is_not_what_the_hub_has_is_removed(hub: Hub) -> None:
    hub.sha256 = "0" * 64
    assert "the sha256 differs. It was removed." in failure()
    assert left() == []


def test_a_page_in_place_of_a_model_is_none(hub: Hub) -> None:
    hub.content = b"<html>please log in</html>"
    assert "is no GGUF file" in failure()
    assert files.pulled() is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_says_what_to_do_with_the_hubs_words(
    hub: Hub, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.refusal = (status, "Access to model owner/repo is restricted.\x1b[31m")
    said = failure()
    assert f"answered {status}: Access to model owner/repo is restricted" in said
    assert f"accept its terms at {hub.url}/owner/repo-GGUF, and set HF_TOKEN" in said
    assert "\x1b" not in said
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert "with the account whose HF_TOKEN this is" in failure()
    assert "hf_secret" not in failure()


def test_a_file_that_is_not_there_says_where_the_files_are_listed(hub: Hub) -> None:
    hub.refusal = (404, "Entry not found")
    assert f"404: Entry not found. There is no such file. Its files are listed at {hub.url}" in (
        failure()
    )


def test_a_hub_that_is_overloaded_is_asked_again_and_then_named(hub: Hub) -> None:
    hub.refusal = (503, "")
    assert "answered 503" in failure()
    assert len(hub.asked) == 5


def test_a_hub_that_cannot_be_reached_names_proxy_and_mirror(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    said = failure()
    assert "127.0.0.1: " in said
    assert "HTTPS_PROXY" in said
    assert "HF_ENDPOINT" in said


def test_a_cdn_that_has_another_file_than_its_hub_says_is_not_believed(hub: Hub) -> None:
    hub.size = 5
    assert "has 1048580 bytes, not 5 as said" in failure()


def test_a_disk_without_room_is_said_before_anything_is_fetched(hub: Hub) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 60

    hub.content = Huge(GGUF)
    assert "where 1152921504.61 GB are needed" in failure()
    assert not hub.bodies()
    assert left() == []


# The token --------------------------------------------------------------------------------------


def test_the_token_is_for_the_hub_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    fetched()
    told = {host: headers.get("authorization") for host, _, headers in hub.asked}
    assert told == {"hub": "Bearer hf_secret", "cdn": None}
    hub.asked.clear()
    fetched(f"{hub.cdn}/another.gguf")
    assert all("authorization" not in headers for _, _, headers in hub.asked)


@pytest.mark.parametrize("moved", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x"])
def test_it_is_sent_on_to_http_alone(hub: Hub, moved: str) -> None:
    hub.moved = moved
    assert "sends on to an address that is not https" in failure()


def test_it_is_not_sent_on_for_ever(hub: Hub) -> None:
    hub.moved = f"{hub.url}/owner/repo/resolve/again"
    hub.linked = False
    assert "8 times without an end" in failure()


# Names ------------------------------------------------------------------------------------------


def test_the_list_is_of_whole_gguf_files_of_repositories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    for known in naming.KNOWN:
        source = naming.find(known.name)
        assert source.url == f"https://huggingface.co/{known.repo}/resolve/main/{known.file}"
        assert known.name in naming.listed()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("qwen", "There is no model 'qwen' in the list"),
        ("owner/repo", "Write owner/repo:FILE.gguf"),
        ("owner/repo:model.safetensors", "is no GGUF file"),
        ("owner/repo:../../x.gguf", "is no path of a file"),
        ("../x:y.gguf", "There is no model"),
        ("owner/repo:big-00001-of-00002.gguf", "one of several parts"),
        ("ftp://host/x.gguf", "is no http or https address"),
        ("https://[::1/x.gguf", "is no http or https address"),
        ("https://host/", "is no GGUF file"),
    ],
)
def test_what_names_no_file_is_said_to(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", name]) == 2
    assert words in capsys.readouterr().err


def test_a_file_in_a_folder_of_its_repository_keeps_its_name() -> None:
    source = naming.find("owner/repo:Q4/my model.gguf")
    assert source.url.endswith("/owner/repo/resolve/main/Q4/my%20model.gguf")
    assert str(source.place) == "owner/repo/my model.gguf"


@pytest.mark.parametrize("kind", ["resolve", "blob"])
def test_an_address_of_the_hub_is_a_file_of_the_hub(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"https://huggingface.co/owner/repo/{kind}/main/Q4/my%20model.gguf?download=true"
    assert naming.find(url) == naming.find("owner/repo:Q4/my model.gguf")
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    assert naming.find(url).url.startswith("https://mirror.example/owner/repo/resolve/main/")


def test_a_url_names_a_file_and_never_a_path() -> None:
    for url in ("https://host/a/..%2f..%2fx.gguf", "https://host/.x.gguf", "https://../x.gguf"):
        place = naming.find(url).place
        assert ".." not in place.parts[1:]
        assert place.name == "x.gguf"


def test_without_a_name_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pull"]) == 0
    assert "qwen3-4b" in capsys.readouterr().out


# The bar ----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_it_is() -> None:
    clock = iter([0.0, 10.0, 10.0, 10.0])
    bar = Bar(screen := Terminal(), now=lambda: next(clock))
    bar.begin("small.gguf", 1_000_000_000, 0)
    bar.more(250_000_000)
    assert "██████░" in screen.getvalue()
    assert " 25%  0.25 GB  25.0 MB/s  0:30 left" in screen.getvalue()


def test_an_interrupted_bar_ends_its_line_and_a_break_is_a_line() -> None:
    bar = Bar(screen := Terminal())
    bar.begin("small.gguf", None, 0)
    bar.more(1_000_000)
    bar.note("broke off")
    bar.end()
    lines = screen.getvalue().split("\n")
    assert "0.00 GB" in lines[1]
    assert lines[2:] == ["broke off", ""]


# What `local` takes -----------------------------------------------------------------------------


def test_local_takes_what_was_pulled_last_unless_a_path_is_named(hub: Hub) -> None:
    own = files.folder().parent / "own.gguf"
    pulled, _ = fetched()
    own.write_bytes(GGUF)
    assert files.find(None) == str(pulled)
    assert files.find(str(own)) == str(own)
    pulled.unlink()
    assert files.pulled() is None
