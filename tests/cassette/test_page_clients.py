"""The page on cassettes says of languages and of Dify: a base URL and a key are all they need."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

from adapters.protocol import Json
from middleware.cassettes.file import read_cassette
from tests.cassette.page import (
    NOWHERE,
    PROVIDER,
    Reader,
    post,
    served,
    shown,
    spans,
    words_of,
)
from tests.support.paths import ROOT

ASK = (
    '{"model": "gpt", "messages": [{"role": "system", "content": "Today is 2026-12-24."}, '
    '{"role": "user", "content": "How cold is it in 沈阳?"}]}'
)
NODE = """
const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: {
    "content-type": "application/json",
    authorization: "Bearer " + process.env.OPENAI_API_KEY,
  },
  body: process.env.ASK,
});
console.log((await answer.json()).choices[0].message.content);
"""
JAVA = """
import java.net.URI;
import java.net.http.*;

class Ask {
    public static void main(String[] given) throws Exception {
        var env = System.getenv();
        var request = HttpRequest
            .newBuilder(URI.create(env.get("OPENAI_BASE_URL") + "/chat/completions"))
            .header("content-type", "application/json")
            .header("authorization", "Bearer " + env.get("OPENAI_API_KEY"))
            .POST(HttpRequest.BodyPublishers.ofFile(java.nio.file.Path.of("ask.json")))
            .build();
        var handler = HttpResponse.BodyHandlers.ofByteArray();
        System.out.write(HttpClient.newHttpClient().send(request, handler).body());
    }
}
"""
GO = """
package main

import ("io"; "net/http"; "os")

func main() {
    body, _ := os.Open("ask.json")
    ask, _ := http.NewRequest("POST", os.Getenv("OPENAI_BASE_URL") + "/chat/completions", body)
    ask.Header.Set("content-type", "application/json")
    ask.Header.Set("authorization", "Bearer " + os.Getenv("OPENAI_API_KEY"))
    answer, err := http.DefaultClient.Do(ask)
    if err != nil { panic(err) }
    io.Copy(os.Stdout, answer.Body)
}
"""
PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "node": ("ask.mjs", NODE, "node ask.mjs"),
    "javac": ("Ask.java", JAVA, "java -Xshare:auto -XX:TieredStopAtLevel=1 Ask.java"),
    "go": ("ask.go", GO, "go run ask.go"),
}


def has_built_go(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether Go's own packages are built on this machine; they take minutes."""
    monkeypatch.setenv("GOTOOLCHAIN", "local")
    monkeypatch.delenv("XDG_CACHE_HOME")
    command = ["go", "list", "-f", "{{.Stale}}", "net/http"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return listed.stdout.strip() == "false"


@pytest.mark.parametrize("tool", PROGRAMS)
def test_a_program_in_any_language_needs_two_variables(
    tool: str, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    if tool == "go" and not has_built_go(monkeypatch):
        pytest.skip("Go would build its packages first: go build net/http")
    monkeypatch.setenv("ASK", ASK)
    name, program, command = PROGRAMS[tool]
    reader.has_the_file()
    reader.write("ask.json", ASK)
    reader.write(name, program)
    ran = reader.usetool(f"usetool replay shop -- {command}")
    assert ran.code == 0, ran.err
    assert "-12 °C." in ran.out
    assert "played 1 of 2" in ran.err


# Dify ---------------------------------------------------------------------------------------------

PING: Json = {"model": "old", "max_tokens": 5, "messages": [{"role": "user", "content": "ping"}]}
QUESTION: Json = {
    "model": "old",
    "stream": False,
    "messages": [{"role": "user", "content": "Where is my order?"}],
}


@contextmanager
def listening(words: str, folder: Path) -> Iterator[str]:
    """A command that serves until it is interrupted, and the address of it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = (folder / "said.txt").open("w", encoding="utf-8")
    command = [sys.executable, "-m", "middleware", *words.split()[1:], "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with said, subprocess.Popen(command, cwd=folder, env=environment, stderr=said) as process:
        until = time.monotonic() + 30
        while not _answers(f"http://127.0.0.1:{port}/healthz"):
            assert process.poll() is None, (folder / "said.txt").read_text("utf-8")
            assert time.monotonic() < until
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (URLError, ConnectionError):
        return False


# The recording is finished by the Ctrl-C that the page tells its reader to press.
@pytest.mark.skipif(  # Windows sends it to every process of the console, pytest among them
    os.name == "nt", reason="there nobody can send Ctrl-C to one process"
)
def test_an_app_that_can_set_only_address_and_key(reader: Reader) -> None:
    """As Dify does: a model is saved, then its app asks."""
    reader.write("config.toml", f'{NOWHERE}keys = ["gateway"]\n{PROVIDER}')
    (path,) = [span for span in spans() if span.startswith("http://HOST:8000/~")]
    key = {"authorization": "Bearer gateway"}
    assert "usetool record shop-bot" in spans()
    with listening("usetool record shop-bot", reader.path) as url:
        base = path.replace("http://HOST:8000", url)
        saved = post(f"{base}/chat/completions", PING, **key)
        live = post(f"{base}/chat/completions", QUESTION, **key)
    assert (saved.status, words_of(live)) == (200, "Fine.")
    assert "usetool record shop-bot: 1 turn" in (reader.path / "said.txt").read_text("utf-8")
    assert len(read_cassette(Path("cassettes/shop-bot.yaml")).turns) == 1
    replays = [span for span in spans() if span in ('mode = "replay"', 'repeats = "last"')]
    with served('keys = ["gateway"]\n[cassettes]\n' + "\n".join(sorted(set(replays)))) as url:
        base = path.replace("http://HOST:8000", url)
        assert words_of(post(f"{base}/chat/completions", PING, **key)) == "pong"
        said = [post(f"{base}/chat/completions", QUESTION, **key) for _ in range(3)]
        assert [words_of(one) for one in said] == ["Fine."] * 3
        changed = [{"role": "system", "content": "Be brief."}, *QUESTION["messages"]]
        miss = post(f"{base}/chat/completions", {**QUESTION, "messages": changed}, **key)
        assert (miss.status, post(f"{base}/chat/completions", PING).status) == (422, 401)


def test_every_language_that_is_shown_is_tried() -> None:
    assert {line.split()[4] for line in shown("sh", "npm test").splitlines()} == {
        "npm",
        "mvn",
        "go",
    }
    assert len(PROGRAMS) == 3
