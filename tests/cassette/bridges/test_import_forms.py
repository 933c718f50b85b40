"""Every form other recorders have is read, and what is none of them is refused."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable

import pytest
import yaml
from vcr.serializers import jsonserializer

from adapters.protocol import Json
from middleware.cassettes.errors import UnreadableCassette
from middleware.cli.importers.recordings import from_recording
from tests.cassette.recordings import ANSWERED, ASKED, interaction, recorded, turns, vcrpy


def vcrpy_json(cassette: Json) -> str:
    text: str = jsonserializer.serialize(cassette)
    return text


def packed(pack: Callable[[bytes], bytes], encoding: str) -> Callable[[Json], str]:
    """As it came over the network; vcrpy's own form where it is not told to decode."""

    def written(cassette: Json) -> str:
        for found in cassette["interactions"]:
            response = found["response"]
            response["headers"]["Content-Encoding"] = [encoding]
            response["body"] = {"string": pack(response["body"]["string"].encode())}
        return vcrpy(cassette)

    return written


def parsed_body(cassette: Json) -> str:
    """As pydantic-ai's serializer writes JSON; streams stay text."""
    for found in cassette["interactions"]:
        request, response = found["request"], found["response"]
        request["parsed_body"] = json.loads(request.pop("body"))
        if response["headers"]["content-type"][0].startswith("application/json"):
            response["parsed_body"] = json.loads(response.pop("body")["string"])
    return vcrpy(cassette)


def cassetter(cassette: Json) -> str:
    def typed(text: str) -> Json:
        try:
            return {"type": "json", "content": json.loads(text)}
        except json.JSONDecodeError:
            return {"type": "text", "content": text}

    for found in cassette["interactions"]:
        request, response = found["request"], found["response"]
        request["body"] = typed(request["body"])
        response["body"] = typed(response["body"]["string"])
        response["status"] = response["status"]["code"]
        found["recorded_at"] = "2026-02-20T10:30:01Z"
    text: str = yaml.safe_dump(cassette)
    return text


FORMS = (
    vcrpy,
    vcrpy_json,
    packed(gzip.compress, "gzip"),
    packed(lambda body: body, "gzip"),
    parsed_body,
    cassetter,
)


@pytest.mark.parametrize("write", FORMS)
@pytest.mark.parametrize("case", ["parallel_calls", "rate_limited", "text"])
def test_all_forms_of_a_recording_give_the_same_turns(
    case: str, write: Callable[[Json], str]
) -> None:
    usual = from_recording(vcrpy(recorded(case)), "t.yaml").cassette
    found = from_recording(write(copy.deepcopy(recorded(case))), "t.yaml").cassette
    assert (
        found.routes
        == usual.routes
        == {"scripted-1": {"kind": "compatible", "upstream": "compatible", "name": "scripted-1"}}
    )
    for turn, expected in zip(found.turns, usual.turns, strict=True):
        assert (turn.body, turn.answer) == (expected.body, expected.answer)
        (exchange,), (wanted,) = turn.exchanges, expected.exchanges
        assert (exchange.upstream, exchange.path) == ("compatible", "/chat/completions")
        assert (exchange.status, exchange.headers) == (wanted.status, wanted.headers)
        assert exchange.pieces == ((0, len(exchange.body)),)
        assert same(exchange.body, wanted.body)


def same(body: bytes, wanted: bytes) -> bool:
    return body == wanted or bool(json.loads(body) == json.loads(wanted))


def test_text_that_looks_like_something_else_stays_text() -> None:
    """As cassetter writes it: YAML 1.2 takes none of these for a day or a number of base 60."""
    words = ["2026-11-18", "2026-11-18T10:00:00Z", "10:30", "=", "<<"]
    told = "\n".join(f"        - {{role: user, content: {word}}}" for word in words)
    text = f"""\
version: 1
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    headers: {{}}
    body:
      type: json
      content:
        model: gpt-5
        temperature: 1.0e-1
        messages:
{told}
  response:
    status: 200
    headers: {{}}
    body: {{type: binary, content: {json.dumps(ANSWERED).encode().hex()}}}
  recorded_at: 2026-11-18T00:00:00Z
"""
    (turn,) = from_recording(text, "t.yaml").cassette.turns
    said = [message["content"] for message in turn.body["messages"]]
    assert said == words
    assert turn.body["temperature"] == 0.1
    assert turn.answer.message


def test_a_body_that_unpacks_without_end_is_left_out() -> None:
    bomb = gzip.compress(bytes(40 << 20))
    with pytest.raises(UnreadableCassette, match=r"more than \d+ bytes"):
        turns(interaction(ASKED, bomb, headers={"content-encoding": ["gzip"]}))


REFUSED = {
    "no list of 'interactions'": "http_interactions:\n- request: {}\n",
    "line 3, column 10: the tag": "interactions:\n- request:\n   body: !!python/tuple [a]\n",
    "the tag !now": "interactions:\n- request: !now x\n",
    "padding": "interactions:\n- request: !!binary abc\n",
    "the alias": "x: {}\ninteractions: [*a]\n",
    "the anchor": "interactions:\n- request: &a [1]\n",
    "levels": "interactions: " + "[" * 10_000 + "]" * 10_000,
    "no call of /chat/completions": "interactions: []\n",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_recording_is_refused(why: str) -> None:
    with pytest.raises(UnreadableCassette, match=r"^t\.yaml[,:]") as refused:
        from_recording(REFUSED[why], "t.yaml")
    assert why in str(refused.value)
