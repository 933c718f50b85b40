"""`usetool last`: asks the running gateway for what it keeps, and prints it for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from middleware.cli import describe
from middleware.cli.chatting import Endpoint, Failed, address
from middleware.config import Config
from middleware.config.access import here

Json = dict[str, Any]
_PATH = "/x_usetool/last"


def endpoints(config: Config, url: str, key: str) -> tuple[Endpoint, ...]:
    """The gateway as each of its clients: who has the config has all keys."""
    where = address(url) if url else _address_of(config)
    keys = [key] if key else [secret.value for secret in config.server.keys]
    return tuple(Endpoint(where, one) for one in keys or [""])


def _address_of(config: Config) -> str:
    return f"{describe.address(replace(config.server, host=here(config.server.host)))}/v1"


def listed(gateway: Sequence[Endpoint]) -> str:
    found = [one for endpoint in gateway for one in endpoint.get(_PATH)["data"]]
    if not found:
        return "No requests are kept. [server] keep_last says how many are, if any came."
    found.sort(key=lambda one: str(one["time"]), reverse=True)
    return describe.columns(map(_row, found), indent="")


def _row(one: Json) -> tuple[str, ...]:
    seconds = "running" if one["seconds"] is None else f"{one['seconds']:.2f}s"
    upstreams = ", ".join(dict.fromkeys(one["upstreams"])) or "-"
    end = one.get("error") or one.get("finish") or ""
    return (
        *(one["id"], one["time"][11:19], str(one["status"] or "-"), seconds),
        *(one["model"] or f"{one['method']} {one['path']}", upstreams, end),
    )


def fetched(gateway: Sequence[Endpoint], identity: str) -> Json:
    """One kept request, for whichever key it came with."""
    failure = Failed("There is no key to ask with.")
    for endpoint in gateway:
        try:
            found: Json = endpoint.get(f"{_PATH}/{identity}")
        except Failed as error:
            failure = error
        else:
            return found
    raise failure


def commands(one: Json) -> str:
    """What repeats both sides in a shell."""
    parts = [f"# the client's request, status {one['status']}\n{one['curl']}"]
    parts += [
        f"# what upstream {call['upstream']!r} was sent, status {call['status']}\n{call['curl']}"
        for call in one["calls"]
    ]
    return "\n\n".join(parts)


def shown(one: Json) -> str:
    return "\n\n".join(_parts(one))


def _parts(one: Json) -> Iterator[str]:
    first = f", first event after {one['first_event']}s" if "first_event" in one else ""
    took = "still running" if one["seconds"] is None else f"{one['seconds']}s{first}"
    yield f"{one['id']}  {one['time']}  {one['model']}  status {one['status']}  {took}"
    if "message" in one:
        yield f"error {one['error']}\n  {one['message']}"
    yield f"client body\n{_pretty(one['body'])}"
    if not one["calls"]:
        yield "No upstream was called."
    for number, call in enumerate(one["calls"], 1):
        times = f"headers after {call['headers_after']}s, end after {call['ended_after']}s"
        yield f"{number}. {call['upstream']}: POST {call['url']}  status {call['status']}  {times}"
        yield f"upstream body\n{_pretty(call['body'])}"
        cut = f" (the first of {call['answer_bytes']} bytes)" if call["answer_cut"] else ""
        yield f"upstream answer{cut}\n{_pretty(call['answer']).strip()}"
    receipt = [(note["code"], note["field"], note["text"]) for note in one["receipt"]]
    if receipt:
        yield f"receipt\n{describe.columns(receipt)}"
    else:
        yield "receipt: nothing was changed or lost"


def _pretty(text: str) -> str:
    """Indented if it is one JSON text; a stream as it came."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(found, indent=2, ensure_ascii=False)
