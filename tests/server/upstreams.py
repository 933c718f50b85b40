"""An Ollama and a relay of a script, as the tests of the model list share them."""

from __future__ import annotations

import orjson

from tests.support.day_one import Json
from tests.support.paths import ROOT

SHOWN: dict[str, Json] = {
    "able:8b": {"family": "qwen3", "length": 40960, "capabilities": ["completion", "tools"]},
    "plain:1b": {"family": "gemma", "length": 8192, "capabilities": ["completion"]},
    "thinker:7b": {
        "family": "qwen3", "length": 131072, "capabilities": ["completion", "tools", "thinking"],
    },
}  # fmt: skip


def ollama(path: str, head: str, body: Json) -> tuple[str, bytes]:
    """Three models; a tool call for who offers tools."""
    if path == "/api/tags":
        return "200 OK", orjson.dumps({"models": [{"name": name, "model": name} for name in SHOWN]})
    shown = SHOWN.get(body["model"])
    if shown is None:
        return "404 Not Found", orjson.dumps({"error": f"model '{body['model']}' not found"})
    if path == "/api/show":
        said = {
            "details": {"family": shown["family"]},
            "capabilities": shown["capabilities"],
            "model_info": {"general.architecture": "a", "a.context_length": shown["length"]},
        }
        return "200 OK", orjson.dumps(said)
    if path == "/api/embed":
        count = len(body["input"])
        return "200 OK", orjson.dumps({"embeddings": [[0.5, -1.0]] * count, "prompt_eval_count": 4})
    message: Json = {"role": "assistant", "content": "It is sunny."}
    asked = body["messages"][-1]["role"] == "user" and "weather" in body["messages"][-1]["content"]
    if "tools" in body and asked:
        call = {"function": {"name": "get_weather", "arguments": {"city": "Shenyang"}}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
    said = {"model": body["model"], "message": message, "done": True, "done_reason": "stop"}
    return "200 OK", orjson.dumps({**said, "prompt_eval_count": 5, "eval_count": 3}) + b"\n"


def shipped(url: str) -> str:
    """The config as it is shipped, with Ollama on another port."""
    text = (ROOT / "config.toml").read_text("utf-8")
    return text.replace('kind = "ollama"', f'kind = "ollama"\nbase_url = "{url}"')


def by_id(listed: Json) -> dict[str, Json]:
    return {entry["id"]: entry for entry in listed["data"]}


RELAY = """
[upstreams.relay]
kind = "compatible"
base_url = "URL/v1"
[models."relay/*"]
upstream = "relay"
name = "*"
[models."own-*"]
upstream = "relay"
name = "gpt-*"
[models."relay/pinned"]
upstream = "relay"
name = "gpt-4o"
vision = false
"""
