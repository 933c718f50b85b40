"""`usetool last`: asks the running gateway for what it keeps, and prints it for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from middleware.cli import describe
from middleware.cli.command import Failed
from middleware.cli.endpoint import GatewayAddress, Json, address
from middleware.config import Config

_PATH = "/x_usetool/last"
_ADVICE = " Start it: usetool serve, or name another: usetool last --url ADDRESS."


def endpoints(config: Config, url: str, key: str) -> tuple[GatewayAddress, ...]:
    """The gateway as each of its clients: who has the config has all keys."""
    where = address(url) if url else describe.own_address(config.server)
    keys = [key] if key else [secret.value for secret in config.client_keys]
    return tuple(GatewayAddress(where, each, _ADVICE) for each in keys or [""])


def listing(gateway: Sequence[GatewayAddress]) -> str:
    records = [record for endpoint in gateway for record in endpoint.get(_PATH)["data"]]
    if not records:
        return "No requests are kept. [server] keep_last says how many are, if any came."
    records.sort(key=lambda record: str(record["time"]), reverse=True)
    return describe.columns(map(_row, records), indent="")


def _row(record: Json) -> tuple[str, ...]:
    seconds = "running" if record["seconds"] is None else f"{record['seconds']:.2f}s"
    upstreams = ", ".join(dict.fromkeys(record["upstreams"])) or "-"
    end = record.get("error") or record.get("finish") or ""
    return (
        *(record["id"], record["time"][11:19], str(record["status"] or "-"), seconds),
        *(record["model"] or f"{record['method']} {record['path']}", upstreams, end),
    )


def fetch(gateway: Sequence[GatewayAddress], identity: str) -> Json:
    """One kept request, for whichever key it came with."""
    return _first(gateway, f"{_PATH}/{identity}")


def fetch_cassette(gateway: Sequence[GatewayAddress], identity: str) -> Json:
    """The same as a cassette of one turn."""
    return _first(gateway, f"{_PATH}/{identity}/cassette")


def _first(gateway: Sequence[GatewayAddress], path: str) -> Json:
    failure = Failed("There is no key to ask with.")
    for endpoint in gateway:
        try:
            record: Json = endpoint.get(path)
        except Failed as error:
            failure = error
        else:
            return record
    raise failure


def commands(record: Json) -> str:
    """What repeats both sides in a shell."""
    parts = [f"# the client's request, status {record['status']}\n{record['curl']}"]
    parts += [
        f"# what upstream {call['upstream']!r} was sent, status {call['status']}\n{call['curl']}"
        for call in record["calls"]
    ]
    return "\n\n".join(parts)


def details(record: Json) -> str:
    return "\n\n".join(_parts(record))


def _parts(record: Json) -> Iterator[str]:
    first = f", first event after {record['first_event']}s" if "first_event" in record else ""
    took = "still running" if record["seconds"] is None else f"{record['seconds']}s{first}"
    yield f"{record['id']}  {record['time']}  {record['model']}  status {record['status']}  {took}"
    if "message" in record:
        yield f"error {record['error']}\n  {record['message']}"
    yield f"client body\n{_pretty(record['body'])}"
    if not record["calls"]:
        yield "No upstream was called."
    for number, call in enumerate(record["calls"], 1):
        times = f"headers after {call['headers_after']}s, end after {call['ended_after']}s"
        yield f"{number}. {call['upstream']}: POST {call['url']}  status {call['status']}  {times}"
        yield f"upstream body\n{_pretty(call['body'])}"
        cut = f" (the first of {call['answer_bytes']} bytes)" if call["answer_cut"] else ""
        yield f"upstream answer{cut}\n{_pretty(call['answer']).strip()}"
    notes = [(note["code"], note["field"], note["text"]) for note in record["receipt"]]
    yield describe.receipt(notes)


def _pretty(text: str) -> str:
    """Indented if it is one JSON text; a stream as it came."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)
