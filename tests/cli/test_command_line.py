"""The command line as people use it: what it prints, and with which code it ends."""

from __future__ import annotations

import http.server
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from pathlib import Path

import pytest

from adapters.shared.traits import Traits
from middleware import __version__, config
from middleware.__main__ import NOBODY_READS, main
from middleware.cli import completion, describe
from middleware.cli import parser as commands
from middleware.cli.common import FINE, LACKING, WRONG
from middleware.config.keys import MODEL, SECTIONS, SERVER
from middleware.routing import ModelEntry
from middleware.server.models import Status
from tests.support.paths import ROOT

KEY = "sk-secret-of-ours-0123456789"
CONFIG = """
[server]
port = PORT
[upstreams.open]
kind = "compatible"
base_url = "http://127.0.0.1:1/v1"
[upstreams.locked]
kind = "compatible"
base_url = "http://127.0.0.1:2/v1"
api_key = "env:LOCKED_KEY"
[models.plain]
upstream = "open"
name = "plain-1"
drop = ["user"]
[models."locked-*"]
upstream = "locked"
name = "*"
"""
REQUEST = """{"messages": [{"role": "user", "content": "你好"}], "user": "u", "model": "plain"}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LOCKED_KEY", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config.toml").write_text(CONFIG.replace("PORT", "8100"), "utf-8")
    (tmp_path / "request.json").write_text(REQUEST, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "middleware", *arguments],
        cwd=ROOT, input=stdin, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip


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


# check -----------------------------------------------------------------------------------------


def test_check_shows_models_with_their_nesting_and_names_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == LACKING
    assert capsys.readouterr().out == (
        "config.toml: no mistakes; 1 of 2 models available.\n\n"
        "server\n  address  http://127.0.0.1:8100\n"
        "  keys     none asked, as only this machine can call\n\n"
        "models\n"
        "  plain     open    tools native                    Route › Show › Automatic › LeakRescue "
        "› Retry › Compatible\n"
        "  locked-*  locked  tools as the upstream has them  not available: the environment "
        "variable LOCKED_KEY is not set\n\n"
        "secrets\n  LOCKED_KEY  missing  upstreams.locked\n"
    )


def test_check_ends_well_if_nothing_is_missing_and_shows_no_secret(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKED_KEY", KEY)
    assert main(["check", "--config", "config.toml"]) == FINE
    said = capsys.readouterr().out
    assert "LOCKED_KEY  found  upstreams.locked" in said
    assert KEY not in said


@pytest.mark.parametrize("command", ["check", "models"])
def test_models_of_an_ollama_that_is_stopped_are_not_available(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama = '[upstreams.o]\nkind = "ollama"\nbase_url = "http://127.0.0.1:9"\n[models.q]\n'
    (folder / "o.toml").write_text(f'{ollama}upstream = "o"\n[models."o/*"]\nupstream = "o"\n')
    main([command, "--config", "o.toml"])
    lines = [
        line for line in capsys.readouterr().out.splitlines() if line.lstrip()[:2] in ("q ", "o/")
    ]
    assert len(lines) == 2
    assert all("`ollama serve`" in line for line in lines)


@pytest.mark.parametrize("running", [True, False])
def test_check_ends_as_well_as_the_ollama_is(
    running: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = http.server.HTTPServer(("127.0.0.1", 0), Tags)
    thread = threading.Thread(target=tags.serve_forever, daemon=True)
    thread.start()
    port = tags.server_port
    if not running:
        tags.shutdown()
        tags.server_close()
    text = f'[upstreams.o]\nkind = "ollama"\nbase_url = "http://127.0.0.1:{port}"\n'
    (folder / "o.toml").write_text(f'{text}[models.q]\nupstream = "o"\n')
    assert main(["check", "--config", "o.toml"]) == (FINE if running else LACKING)
    assert ("not available" in capsys.readouterr().out) is not running
    if running:
        tags.shutdown()
        tags.server_close()
    thread.join()


class Tags(http.server.BaseHTTPRequestHandler):
    """An Ollama that has one model."""

    def do_GET(self) -> None:
        body = b'{"models": [{"name": "q"}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_variable_that_is_nearly_set_is_asked_about(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKED_KEY", KEY)
    main(["check"])
    said = capsys.readouterr().out
    assert "LOCKED_KEY  missing  upstreams.locked Did you mean LOKED_KEY, which is set?" in said
    assert KEY not in said
    found = config.load("config.toml")
    assert "LOCKED_KEY: Did you mean LOKED_KEY, which is set?" in describe.banner(found, ())


def test_check_says_that_the_proxy_of_the_environment_is_not_used(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:word@127.0.0.1:3128")
    main(["check"])
    said = capsys.readouterr().out
    assert "https_proxy is set, but" in said
    assert '[upstreams.locked]\n  proxy = "env:https_proxy"' in said
    assert "word" not in said


def test_check_says_nothing_of_a_proxy_that_an_upstream_uses(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:3128")
    text = (folder / "config.toml").read_text("utf-8")
    used = text.replace("[upstreams.locked]", '[upstreams.locked]\nproxy = "env:https_proxy"')
    (folder / "config.toml").write_text(used, "utf-8")
    main(["check"])
    assert "is set, but" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("server", "warned"), [("", True), ('host = "0.0.0.0"\nkeys = ["k"]\n', False)]
)
def test_check_prints_the_address_for_clients_in_containers(
    server: str, warned: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "config.toml").read_text("utf-8")
    (folder / "config.toml").write_text(text.replace("port =", f"{server}port ="), "utf-8")
    main(["check", "--from-docker"])
    said = capsys.readouterr().out
    assert "http://host.docker.internal:8100/v1" in said
    assert ('host = "0.0.0.0"' in said) == warned


@pytest.mark.parametrize("command", ["check", "serve", "models", "explain"])
def test_mistakes_of_the_config_end_every_command(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").write_text("[server]\nprot = 1\nport = 0\n", "utf-8")
    assert main([command, *(["request.json"] if command == "explain" else [])]) == WRONG
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(": ")[1] for line in err.splitlines()] == [
        "server.prot",
        "server.port",
        "models",
    ]


def test_a_missing_config_is_told_with_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--config", "no/such.toml"]) == WRONG
    said = "cannot be read: No such file or directory (--config FILE names another)"
    assert capsys.readouterr().err == f"no/such.toml: {said}\n"


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


# models, serve ---------------------------------------------------------------------------------


def test_models_lists_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == FINE
    assert capsys.readouterr().out.splitlines() == [
        "plain     open    available",
        "locked-*  locked  the environment variable LOCKED_KEY is not set",
    ]


def test_serve_says_where_it_is_and_answers_until_it_is_interrupted(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    path = folder / "config.toml"
    command = [sys.executable, "-m", "middleware", "serve", "--config", str(path), "--port", port]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        banner = [server.stderr.readline() for _ in range(5)]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as answer:
                assert answer.status == 200
                assert answer.headers.get("server") is None
            taken = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=10) == FINE
    assert banner[0] == f"usetool {__version__} on http://127.0.0.1:{port}/v1 ({path})\n"
    assert banner[1].split() == ["models", "plain"]
    assert "locked-*: the environment variable LOCKED_KEY is not set" in banner[2]
    assert taken.returncode == LACKING
    assert "Address already in use. Choose another" in taken.stderr


def began(*arguments: str, shown: str = "") -> subprocess.Popen[str]:
    # A suite that a shell runs in the background ignores Ctrl-C, and its children would too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, *([shown] if shown else []), "-m", "middleware", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["argparse", "middleware.config.keys", "aiohttp", "uvicorn"])
def test_ctrl_c_during_the_start_says_stopping_and_no_more(module: str, folder: Path) -> None:
    config = ("--config", str(folder / "config.toml"), "--port", "8199")
    with began("serve", *config, shown="-Ximporttime") as process:
        assert process.stderr is not None
        while not process.stderr.readline().rstrip().endswith(f" {module}"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1].splitlines(keepends=True)
        told = [line for line in said if not line.startswith("import time:")]
    assert told == ["stopping\n"]


@pytest.mark.parametrize(
    "command", [("--help",), ("check", "--help"), ("check",), ("models",), ("completion", "bash")]
)
def test_who_reads_no_further_gets_no_traceback(command: tuple[str, ...], folder: Path) -> None:
    config = () if command[-1] in ("--help", "bash") else ("--config", str(folder / "config.toml"))
    with began(*command, *config) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode in (FINE, NOBODY_READS)  # argparse itself ends --help


def test_the_banner_tells_clients_to_send_a_key_if_one_is_asked() -> None:
    text = '[server]\nhost = "::"\nkeys = ["K"]\n' + CONFIG.replace("[server]\nport = PORT", "")
    found = config.parse(text, environment={})
    said = describe.banner(found, ())
    assert "http://[::]:8000/v1/chat/completions" in said
    assert "-H 'authorization: Bearer KEY'" in said
    assert "a client must send one of 1" in said


# The config that is shipped --------------------------------------------------------------------


def test_the_shipped_config_runs_without_any_key() -> None:
    found = config.load(ROOT / "config.toml", environment={})
    assert found.server.host == "127.0.0.1"
    assert found.models["demo"].upstream
    assert found.upstreams[found.models["demo"].upstream].kind == "scripted"
    assert not any(model.coming for model in found.models.values())
    keyless = [up.kind for up in found.upstreams.values() if not up.missing()]
    assert keyless == ["local", "scripted", "ollama"]


@pytest.mark.parametrize(
    ("key", "found", "proposed"),
    [
        ("", [], "local"),
        ("", ["ollama/small", "ollama/large"], "ollama/small"),
        ("ANTHROPIC_API_KEY", [], "sonnet"),
        ("DEEPSEEK_API_KEY", [], "deepseek"),
        ("OPENAI_API_KEY", [], "gpt"),
    ],
)
def test_the_banner_proposes_what_is_found_before_the_embedded_model(
    key: str, found: list[str], proposed: str
) -> None:
    shipped = config.load(ROOT / "config.toml", environment={key: "k"} if key else {})
    statuses = []
    for name, model in shipped.models.items():
        lacking = "no key" if shipped.upstreams[model.upstream].missing() else ""
        names = found if name == "ollama/*" else [name.replace("*", "x")]
        reason = "" if names else "no model was found at http://127.0.0.1:11434"
        entry = ModelEntry(name, "", not lacking, lacking, "", ())
        statuses.append(Status(entry, dict.fromkeys(names, Traits()), lacking or reason))
    said = describe.banner(shipped, statuses)
    assert f'"model":"{proposed}"' in said
    assert ("ollama/*: no model was found at http://127.0.0.1:11434" in said) is (not found)
    assert "local: when it is first asked" in said


def test_the_shipped_config_mentions_every_key_of_the_server_and_the_timeouts() -> None:
    text = (ROOT / "config.toml").read_text("utf-8")
    for section in ("server", "defaults.timeouts"):
        for name in SECTIONS[section]:
            assert re.search(rf"\b{name} = ", text), name
    assert {"host", "keys"} <= SERVER.keys()
    assert {"defaults", "override", "drop"} <= MODEL.keys()


# Completion ------------------------------------------------------------------------------------


def completed(shell: str, line: str) -> list[str]:
    """What a shell would offer behind the words of a line."""
    script = run("completion", shell).stdout
    if shell == "bash":
        words = line.split(" ")
        script += f"COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}')\n"
        script += f"COMP_CWORD={len(words) - 1}\n_usetool\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        command = ["bash", "--norc"]
    elif shell == "zsh":
        # Outside of the line editor there is nothing to offer to: what is offered is printed.
        script = (
            "compdef() { }\ncompadd() { shift; print -l -- $@ }\n_files() { }\n"
            f"{script}\nwords=({line})\nCURRENT={len(line.split(' '))}\n_usetool\n"
        )
        command = ["zsh", "-f"]
    else:
        script += f"complete -C '{line}'\n"
        command = ["fish", "--no-config"]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [word.split("\t")[0] for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_offers_commands_and_their_options(shell: str) -> None:
    offered = completed(shell, "usetool ")
    assert {"serve", "check", "explain", "last", "models", "chat", "import"} <= {*offered}
    assert {"--curl", "--url", "--config"} <= {*completed(shell, "usetool last --")}
    assert "litellm" in completed(shell, "usetool import ")
    assert "--curl" not in completed(shell, "usetool chat --")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_knows_every_command_and_option(shell: str) -> None:
    script = run("completion", shell).stdout
    parser = commands.parser()
    for name, options in completion.words(parser).items():
        assert name in script
        for option in options:
            assert option in script


# The project -----------------------------------------------------------------------------------


def test_the_licence_is_there_and_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License\n\nCopyright (c) 2026 The")
