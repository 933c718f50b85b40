"""The chat on the terminal as a session: it finds or runs a gateway."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from middleware import config
from middleware.__main__ import main
from middleware.cli.chat import session as chat_session
from middleware.cli.chat.conversation import Dialogue
from middleware.cli.chat.gateway import running
from middleware.cli.chat.screen import Screen
from middleware.cli.command import FINE, LACKING, Failed
from middleware.cli.endpoint import GatewayAddress, address, models
from tests.cli.chat.talking import TOOLS, Json, chunk
from tests.support.paths import ROOT

CONFIG = """
[recall]
store = "off"
[server]
port = PORT
[upstreams.demo]
kind = "scripted"
[models."any-*"]
upstream = "demo"
[models.demo]
upstream = "demo"
[models.other]
upstream = "demo"
"""


# A session -------------------------------------------------------------------------------------


def lines(*typed: str | type[BaseException]) -> chat_session.Read:
    waiting = iter(typed)

    def read(_: str) -> str:
        line = next(waiting, EOFError)
        if isinstance(line, str):
            return line
        raise line

    return read


@contextmanager
def own() -> Iterator[GatewayAddress]:
    """A gateway inside this process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    found = config.parse(CONFIG.replace("PORT", port), environment={})
    with running(found, lambda _: None) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def endpoint() -> Iterator[GatewayAddress]:
    with own() as found:
        yield found


def session(
    endpoint: GatewayAddress, *typed: str | type[BaseException], model: str | None = None
) -> str:
    shown: list[str] = []
    chat_session.chat(endpoint, model, tuple(TOOLS.values()), lines(*typed), Screen(shown.append))
    return "".join(shown)


def test_the_first_model_that_is_no_pattern_answers_and_calls_a_tool(
    endpoint: GatewayAddress,
) -> None:
    said = session(endpoint, "What is the weather in Rome?")
    assert said.startswith(f"demo at {endpoint.url} (all: demo, other)\ntools: get_weather, ")
    assert '→ get_weather {"city":"Rome"}' in said
    assert said.count("made-up example data") == 2  # the result, and the answer that quotes it


def test_commands_change_the_chat_and_say_so(endpoint: GatewayAddress) -> None:
    said = session(
        endpoint, "/tools", "Weather in Rome?", "/tools", "/model other", "/new", "/what", "",
        "/quit", "never said",
    )  # fmt: skip
    parts = ("tools off", "tools on", "other from here on", "forgotten", "/model NAME")
    places = [said.rindex(part) for part in parts]
    assert places == sorted(places)
    assert "→" not in said
    assert "never said" not in said


def test_a_model_that_is_not_there_begins_no_chat(endpoint: GatewayAddress) -> None:
    with pytest.raises(Failed, match="'nobody' does not exist here"):
        session(endpoint, "hello", model="nobody")
    assert "any-thing at" in session(endpoint, model="any-thing")


def test_escapes_of_a_model_steer_no_terminal() -> None:
    shown: list[str] = []
    screen = Screen(shown.append)
    for tell in (screen.text, screen.thought, screen.line, screen.note, screen.result):
        tell("a\x1b[2J\x9b31m\u202e\u200b\rb\n")
    screen.call("x\x1b]0;y\x07", "{\x1b}")
    assert not [one for one in "".join(shown) if not (one.isprintable() or one == "\n")]


def test_an_error_is_shown_and_the_chat_goes_on(endpoint: GatewayAddress) -> None:
    said = session(endpoint, "/model nobody", "/model any-*", "Weather in Rome?", model="demo")
    assert "! 404: The model 'nobody' does not exist here." in said
    assert "nobody from here on" not in said
    assert '→ get_weather {"city":"Rome"}' in said


def test_an_interrupt_at_the_prompt_ends_the_chat(endpoint: GatewayAddress) -> None:
    assert "→" not in session(endpoint, KeyboardInterrupt, "Weather in Rome?")


def test_an_interrupt_of_an_answer_ends_only_that() -> None:
    def ask(_: Json) -> Generator[Json, None, None]:
        yield chunk(content="Well")
        raise KeyboardInterrupt

    shown: list[str] = []
    chat_session.say(Dialogue(ask, "m", Screen(shown.append)), "?")
    assert "".join(shown) == "Well\n(stopped)\n"


# Endpoints -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://a:8000", "http://a:8000/v1"),
        ("a:8000/", "http://a:8000/v1"),
        ("https://a/v1/", "https://a/v1"),
        ("https://a/api/v1/chat/completions", "https://a/api/v1"),
    ],
)
def test_an_address_may_be_written_as_people_do(written: str, meant: str) -> None:
    assert address(written) == meant


class Elsewhere(BaseHTTPRequestHandler):
    """Some other server."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path, (404, b"<html>not here</html>"))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def elsewhere(**answers: tuple[int, bytes]) -> Iterator[str]:
    kind = type("Answers", (Elsewhere,), {"answers": {f"/{k}": v for k, v in answers.items()}})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, b"<html>not here</html>"), "404: <html>not here"),
        ((401, b'{"error": {"message": "No key."}}'), "401: No key."),
        ((200, b"<html>"), "does not answer in JSON"),
        ((200, b'{"data": 1}'), "is that a gateway?"),
    ],
)
def test_what_is_no_gateway_is_said(answer: tuple[int, bytes], told: str) -> None:
    with elsewhere(models=answer) as url, pytest.raises(Failed, match=r"^.*" + told[:9]) as failed:
        models(GatewayAddress(url))
    assert told in str(failed.value)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        (b'data: {"error": {"message": "It broke."}}\n\n', "It broke."),
        (b'data: {"error": "It broke."}\n\n', "It broke."),
        (b": ping\n\ndata: [DONE]\n\n", "broke off before its end"),
        (b"data: {no\n\n", "no JSON"),
        (b"", "broke off before its end"),
    ],
)
def test_a_stream_that_fails_is_a_failure(stream: bytes, told: str) -> None:
    with elsewhere(**{"chat/completions": (200, stream)}) as url:
        conversation = Dialogue(GatewayAddress(url).ask, "m", Screen(lambda _: None))
        with pytest.raises(Failed) as failed:
            conversation.say("?")
    assert told in str(failed.value)


def test_a_gateway_that_runs_is_used_with_the_configs_key() -> None:
    listing = b'{"data": [{"id": "there"}]}'
    with elsewhere(**{"v1/models": (200, listing)}) as url:
        port, told = url.rpartition(":")[2], list[str]()
        text = CONFIG.replace("PORT", f'{port}\nhost = "0.0.0.0"\nkeys = ["K"]')
        with running(config.parse(text, environment={}), told.append) as found:
            assert found == GatewayAddress(f"{url}/v1", "K")
            assert models(found) == ["there"]
    assert told == []
    assert "K" not in repr(found).replace("Key", "")


def test_a_gateway_of_ones_own_asks_for_the_key_and_is_given_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told: list[str] = []
    text = CONFIG.replace("PORT", f'{port}\nkeys = ["K"]')
    with running(config.parse(text, environment={}), told.append) as found:
        assert models(found) == ["demo", "other"]
        with pytest.raises(Failed, match=r"^401: You didn't provide an API key"):
            models(GatewayAddress(found.url))
    (first,) = told
    assert first.startswith("This chat runs config.toml itself: no gateway runs at http://127.0.0.")
    assert "refused" not in first
    with pytest.raises(Failed, match="cannot be reached"):
        models(found)


# The command -----------------------------------------------------------------------------------


def test_the_command_reads_lines_and_ends_well(endpoint: GatewayAddress) -> None:
    command = [sys.executable, "-m", "middleware", "chat", "--url", endpoint.url]
    done = subprocess.run(
        [*command, "--model", "other"], cwd=ROOT, input="Weather in Rome?\n", text=True,
        capture_output=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (FINE, "")
    assert done.stdout.startswith(f"other at {endpoint.url} (all: demo, other)\n")
    assert '→ get_weather {"city":"Rome"}\n← {"city": "Rome"' in done.stdout
    assert "\x1b" not in done.stdout


def test_the_command_says_what_it_cannot_reach(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert main(["chat", "--url", f"127.0.0.1:{port}"]) == LACKING
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"http://127.0.0.1:{port}/v1 cannot be reached or broke off: "
                              "Connection refused.\n")  # fmt: skip
