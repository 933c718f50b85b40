"""`usetool check`: what there is, what is missing, and how it ends."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from middleware import config
from middleware.__main__ import main
from middleware.cli import describe
from middleware.cli.command import FINE, LACKING, WRONG

KEY = "sk-secret-of-ours-0123456789"


# check -----------------------------------------------------------------------------------------


def test_check_shows_models_with_their_nesting_and_names_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == LACKING
    assert capsys.readouterr().out == (
        "config.toml: no mistakes; 1 of 2 models available.\n\n"
        "server\n  address  http://127.0.0.1:8100\n"
        "  doors    chat, responses: http://127.0.0.1:8100/v1\n"
        "  doors    messages, ollama: http://127.0.0.1:8100\n"
        "  keys     none asked, as only this machine can call\n\n"
        "models\n"
        "  plain     open    tools native                    Route › Show › Retry › Automatic "
        "› LeakRescue › Breaker › Compatible\n"
        "  locked-*  locked  tools as the upstream has them  not available: the environment "
        "variable LOCKED_KEY is not set\n\n"
        "secrets\n  LOCKED_KEY  missing  upstreams.locked\n"
    )


def test_check_shows_what_clients_may(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clients = (
        '[clients.shop]\nkey = "k1"\nmodels = ["demo"]\nrequests_per_minute = 5\n'
        'budget = "2.5 USD/day"\n[clients.ops]\nkey = "k2"\nadmin = true\n'
    )
    model = '[upstreams.d]\nkind = "scripted"\n[models.demo]\nupstream = "d"\n'
    (folder / "config.toml").write_text(clients + model, "utf-8")
    assert main(["check"]) == FINE
    assert (
        "\n\nclients\n  shop  demo        5 requests a minute, 2.5 USD/day\n"
        "  ops   all models  admin, no limits\n\nmodels\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize(("store", "kept"), [("file", True), ("memory", True), ("off", False)])
def test_check_shows_the_memory_between_turns_and_opens_no_file(
    store: str, kept: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recall = f'[recall]\nstore = "{store}"\npath = "kept.sqlite3"\n'
    model = '[upstreams.c]\nkind = "claude"\n[models.sonnet]\nupstream = "c"\n'
    (folder / "config.toml").write_text(recall + model, "utf-8")
    assert main(["check"]) == FINE
    assert ("Recall › " in capsys.readouterr().out) is kept
    assert not (folder / "kept.sqlite3").exists()


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


def test_one_of_several_keys_that_is_not_set_is_no_misspelt_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKED_KEY", KEY)
    keys = 'api_key = ["env:LOCKED_KEY", "env:LOCKED_KEY_2"]\n'
    model = f'[upstreams.c]\nkind = "claude"\n{keys}[models.sonnet]\nupstream = "c"\n'
    (folder / "config.toml").write_text(model, "utf-8")
    assert main(["check"]) == FINE
    said = capsys.readouterr().out
    assert "LOCKED_KEY_2  missing  upstreams.c" in said
    assert "Did you mean" not in said


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


@pytest.mark.parametrize(
    ("name", "kind"),
    [("deepseek/deepseek-chat", "deepseek"), ("ollama_chat/qwen3", "ollama"),
     ("anthropic/claude-x", "claude"), ("gemini/gemini-x", ""), ("bedrock/x", ""), ("x", "")],
)  # fmt: skip
def test_check_says_which_kind_is_nearer_than_litellm(
    name: str, kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'[upstreams.l]\nkind = "longtail"\n[models.m]\nupstream = "l"\nname = "{name}"\n'
    (folder / "config.toml").write_text(text, "utf-8")
    assert main(["check"]) == FINE
    hint = f'm: write name = "{name.partition("/")[2]}" and an upstream of kind = "{kind}"'
    assert (hint in capsys.readouterr().out) is bool(kind)


def test_check_knows_from_litellms_data_what_its_models_can_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = 'upstream = "l"\nname = "gemini/gemini-2.5-pro"\n'
    text = f'[upstreams.l]\nkind = "longtail"\n[models.m]\n{named}'
    (folder / "config.toml").write_text(text, "utf-8")
    assert main(["check"]) == FINE
    said = capsys.readouterr().out
    assert "tools native, vision, reasoning, json_schema, 1048576 tokens" in said
    (folder / "config.toml").write_text(f"{text}context_length = 5000\n", "utf-8")
    assert main(["check"]) == FINE
    assert "5000 tokens" in capsys.readouterr().out
