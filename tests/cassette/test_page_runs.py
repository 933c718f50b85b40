"""The page on cassettes: what it shows happens, from a first recording to a job without keys."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml

from middleware.cassettes.file import read_cassette
from middleware.server.transport import serving
from tests.cassette.page import (
    ASKING,
    FIRST,
    PROVIDER,
    RELAY,
    SECOND,
    Reader,
    commands,
    post,
    served,
    shown,
    spans,
    words_of,
)

pytest_plugins = ("pytester",)
LOADED = (serving,)  # once for all runs within
CHAT = "/chat/completions"


def test_a_first_recording(reader: Reader) -> None:
    reader.write("app.py", shown("python", "client = OpenAI()"))
    recorded, replayed = map(reader.usetool, shown("sh", "python app.py").splitlines())
    assert (recorded.code, replayed.code) == (0, 0), (recorded.err, replayed.err)
    assert recorded.out == replayed.out
    assert "沈阳" in recorded.out
    assert "played 1 of 1" in replayed.err
    assert "沈阳" in (reader.path / "cassettes/shop.yaml").read_text("utf-8")


# The file -----------------------------------------------------------------------------------------

REPLAYS = '[cassettes]\nmode = "replay"\n'


def test_the_file_that_is_shown_plays_as_it_says(reader: Reader) -> None:
    path = reader.has_the_file()
    assert reader.usetool("usetool cassette verify shop").out == "shop: nothing to say\n"
    with served(REPLAYS) as url:
        first, second = (post(f"{url}/~shop/v1{CHAT}", ask) for ask in (FIRST, SECOND))
        again = post(f"{url}/~shop/v1{CHAT}", FIRST)
    assert [words_of(first), words_of(second)] == ["-12 °C.", "Still -12 °C."]
    assert first.headers["x-usetool-replay"] == "shop turn=1 of=2"
    assert (again.status, again.body["error"]["code"]) == (422, "cassette_exhausted")
    whole = read_cassette(path).turns[0].exchanges[0]
    assert [pause for pause, _ in whole.pieces] == [410]


def test_a_miss_is_told_as_shown(reader: Reader) -> None:
    reader.has_the_file()
    system, user = FIRST["messages"]
    warm = {**FIRST, "messages": [system, {**user, "content": "How warm is it in 沈阳?"}]}
    with served(REPLAYS) as url:
        answer = post(f"{url}/~shop/v1{CHAT}", warm)
    assert (answer.status, answer.headers["x-should-retry"]) == (422, "false")
    told = answer.body["error"]["message"].partition(" (request id")[0]
    assert told == shown("text", "has no turn like this").rstrip("\n")


def test_each_way_of_naming_leads_to_the_file(reader: Reader) -> None:
    reader.has_the_file()
    header, key = "x-usetool-cassette: shop", "anything~shop"
    path = "http://127.0.0.1:8000/~shop/v1"
    assert {header, key, path} <= set(spans())
    with served(REPLAYS) as url:
        here = path.replace("http://127.0.0.1:8000", url)
        ways: list[tuple[str, Mapping[str, str]]] = [
            (f"{url}/v1{CHAT}", dict([header.split(": ")])),
            (f"{here}{CHAT}".replace("shop", "shop@2"), {}),
            (f"{url}/v1{CHAT}", {"authorization": f"Bearer {key}@3"}),
        ]
        said = [words_of(post(address, FIRST, **headers)) for address, headers in ways]
        assert said == ["-12 °C."] * 3
        both = post(f"{here}{CHAT}", FIRST, x_usetool_cassette="other")
        mode = post(f"{here}{CHAT}", FIRST, x_usetool_mode="record")
    assert (both.status, both.body["error"]["code"]) == (400, "cassette_ambiguous")
    assert (mode.status, mode.body["error"]["code"]) == (403, "mode_not_allowed")
    with served(PROVIDER) as url:
        off = post(f"{url}/~shop/v1{CHAT}", FIRST)
    assert (off.status, off.body["error"]["code"]) == (400, "cassettes_off")


def test_a_request_has_its_own_fault(reader: Reader) -> None:
    reader.has_the_file()
    with served(REPLAYS) as url:
        busy = post(f"{url}/~shop/v1{CHAT}", FIRST, x_usetool_fault='{"first": {"status": 429}}')
        again = post(f"{url}/~shop/v1{CHAT}", FIRST)
        cut = post(f"{url}/~shop/v1{CHAT}", SECOND, x_usetool_fault='{"empty": true}')
    assert (busy.status, again.status, cut.status) == (200, 422, 502)


def test_an_id_of_today_is_carried_into_the_answer(reader: Reader) -> None:
    (mask,) = [yaml.safe_load(span) for span in spans() if "carry: true" in span]
    asked = {"role": "user", "content": "Ship T-7."}
    answer = {"message": {"role": "assistant", "content": "T-7 is on its way."}}
    more = [asked, answer["message"], {"role": "user", "content": "Thanks."}]
    turns = [
        {"ask": {"body": {"model": "m", "messages": messages}}, "answer": answer}
        for messages in ([asked], more)
    ]
    written = {"usetool": {"cassette": 1}, "match": {"mask": [mask]}, "turns": turns}
    reader.write("cassettes/order.yaml", json.dumps(written))
    with served(REPLAYS) as url:
        for messages in ([asked], more):
            today = json.dumps({"model": "m", "messages": messages}).replace("T-7", "T-9")
            found = post(f"{url}/~order/v1{CHAT}", today.encode())
            assert words_of(found) == "T-9 is on its way."


@pytest.mark.skipif(  # the commands are run as the page has them; CI's machine has curl
    shutil.which("curl") is None, reason="there is no curl"
)
def test_a_harness_asks_what_was_played_and_begins_again(reader: Reader) -> None:
    reader.has_the_file()
    asking, rewinding = commands("curl ")
    with served(REPLAYS) as url:

        def run(command: str) -> Any:
            environment = {**os.environ, "USETOOL_URL": url, "NO_PROXY": "*"}
            done = subprocess.run(
                f"{command} -s", shell=True, env=environment, capture_output=True, check=True
            )
            return json.loads(done.stdout)

        post(f"{url}/~shop/v1{CHAT}", FIRST)
        said = run(asking)
        assert (said["played"], said["missed"], said["unused"]) == ([1], [], [2])
        assert run(rewinding)["unused"] == [1, 2]
        assert post(f"{url}/~shop/v1{CHAT}", FIRST).status == 503  # 529, to OpenAI's clients
        assert words_of(post(f"{url}/~shop/v1{CHAT}", SECOND)) == "Still -12 °C."


# A provider ---------------------------------------------------------------------------------------


def test_models_and_versions_are_compared(reader: Reader, provider: str) -> None:
    reader.has_relay(provider)
    reader.write("app.py", ASKING.replace("print(ask(text))", f"print(ask(text, tools={TOOLS}))"))
    run = "-- python app.py hello cancel"
    recorded = reader.usetool(f"usetool record shop {run}")
    assert (recorded.code, recorded.err.split(",")[0]) == (0, "usetool record shop: 2 turns")
    shutil.copy("cassettes/shop.yaml", "cassettes/shop-new.yaml")
    reader.usetool("usetool replay shop --report replay.json -- python app.py cancel")
    diff, often, files, refresh, verify, prune = (
        reader.usetool(line) for line in shown("sh", "cassette diff").splitlines()
    )
    assert (diff.code, diff.out.splitlines()[-1]) == (1, "2 turns: 1 worded, 1 different")
    assert "2 questions, 0 of them answered before" in diff.err
    assert often.code == 1
    assert "agreement 0/5, old model 5/5" in often.out
    assert (files.code, files.out) == (0, "2 turns: 2 same\n")
    assert (refresh.code, refresh.err) == (0, "shop.yaml: nothing changed\n")
    assert (verify.code, verify.out) == (0, "shop: nothing to say\n")
    assert (prune.code, len(read_cassette(Path("cassettes/shop.yaml")).turns)) == (0, 1)


TOOLS = [{"type": "function", "function": {"name": name}} for name in ("cancel", "refund")]


def test_what_is_named_is_not_written_and_still_found(reader: Reader, provider: str) -> None:
    reader.has_relay(provider)
    (redact,) = [span for span in spans() if span.startswith("redact = ['")]
    (mask,) = [span for span in spans() if "secret:redacted" in span]
    pattern = redact.replace(", 'messages[0]'", "")
    config = reader.path / "config.toml"
    config.write_text(f"[cassettes]\n{pattern}\n{config.read_text('utf-8')}", "utf-8")
    run = "-- python app.py 'I am jane@example.com.'"
    assert reader.usetool(f"usetool record shop {run}").code == 0
    written = Path("cassettes/shop.yaml").read_text("utf-8")
    assert "jane@" not in written
    assert "a-key-that-is-secret" not in written
    assert reader.usetool(f"usetool replay shop {run}").code == 3
    reader.write("cassettes/shop.yaml", f"match: {{mask: [{mask}]}}\n{written}")
    assert reader.usetool(f"usetool replay shop {run}").code == 0
    (command,) = [span for span in spans() if span.startswith("usetool cassette redact")]
    assert reader.usetool(command).code == 0


def test_requests_that_have_happened_and_files_of_others(reader: Reader, provider: str) -> None:
    reader.has_relay(provider)
    with served(RELAY.format(url=provider)) as url:
        kept = post(f"{url}/v1{CHAT}", {**FIRST, "model": "sonnet"})
        last, importing, har, slim = shown("sh", "usetool last").splitlines()
        named = last.replace("req_0123456789abcdef0123456789ab", kept.headers["x-request-id"])
        assert reader.usetool(named.replace("last", f"last --url {url}/v1", 1)).code == 0
    reader.write("cassettes/shop.yaml", Path("bug.yaml").read_text("utf-8"))
    assert reader.usetool("usetool cassette verify shop bug.yaml").code == 0
    assert reader.usetool("usetool cassette export shop --to vcrpy -o old.yaml").code == 0
    assert reader.usetool(har).code == reader.usetool(slim).code == 0
    assert json.loads(Path("shop.har").read_text("utf-8"))["log"]["entries"]
    assert not read_cassette(Path("small.yaml")).turns[0].exchanges
    assert reader.usetool(importing).code == 0
    assert [turn.model for turn in read_cassette(Path("cassettes/shop.yaml")).turns] == ["old"]
    model = next(span for span in spans() if span == "model: any")
    text = Path("cassettes/shop.yaml").read_text("utf-8")
    reader.write("cassettes/shop.yaml", f"match: {{{model}}}\n{text}")
    with served(REPLAYS) as url:
        assert words_of(post(f"{url}/~shop/v1{CHAT}", {**FIRST, "model": "sonnet"})) == "Fine."


def test_vcrpy_reads_a_cassette(reader: Reader) -> None:
    path = reader.has_the_file()
    (line,) = [span for span in spans() if span.startswith("recorder.register_serializer")]
    import middleware.cassettes.vcr

    assert {'serializer="usetool"', 'record_mode="none"'} <= set(spans())
    recorder = vcr.VCR(serializer="usetool", record_mode="none")
    exec(line, {"middleware": middleware, "recorder": recorder})
    with recorder.use_cassette(str(path)) as tape:
        assert [request.uri for request in tape.requests] == [
            "http://relay.test/v1/chat/completions"
        ]


# Runs that fail -----------------------------------------------------------------------------------


def test_a_job_fails_whatever_the_application_does(
    reader: Reader, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.has_relay(provider)
    assert reader.usetool("usetool record shop -- python app.py one two").code == 0
    Path("config.toml").unlink()
    monkeypatch.setenv("CI", "true")
    (line,) = [one for one in commands() if "--all-played" in one]
    codes = {
        said: reader.usetool(f"{line} {said}".rstrip())
        for said in ("one two", "one three", "one", "")
    }
    assert [ran.code for ran in codes.values()] == [0, 3, 4, 5]
    assert "I am sorry." in codes["one three"].out
    assert Path("replay.xml").read_text("utf-8").startswith("<testsuite")
    gone = reader.usetool("usetool replay nosuch -- python app.py one")
    assert (gone.code, gone.out) == (3, "I am sorry.\n")
    for refused in ("usetool record shop -- python app.py", "usetool cassette refresh shop"):
        assert reader.usetool(refused).code == 2
    (verify,) = [one for one in commands() if one == "usetool cassette verify shop"]
    assert reader.usetool(verify).code == 0


# pytest -------------------------------------------------------------------------------------------


def test_the_test_that_is_shown_passes_once_it_is_recorded(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_app=shown("python", "usetool_cassette"))
    plugin = ("-p", "middleware.cassettes.pytest_plugin")
    for how in ("pytest --usetool-mode record", "pytest"):
        assert how in spans()
        done = pytester.runpytest_inprocess(*plugin, *how.split()[1:])
        done.assert_outcomes(passed=1)
    (found,) = pytester.path.rglob("*.yaml")
    assert found.relative_to(pytester.path).as_posix() in spans()
    helped = pytester.runpytest_inprocess(*plugin, "--help").stdout.str()
    for option in {span for span in spans() if span.startswith(("--usetool-", "usetool_"))}:
        assert option in helped or option == "usetool_cassette", option
