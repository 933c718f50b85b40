"""Speaks to a gateway over HTTP with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from middleware.cli.command import Failed

Json = dict[str, Any]
_LOOK_SECONDS = 5.0
# The gateway itself ends what takes too long, and keeps a stream alive until then.
_CHAT_SECONDS = 660.0


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    url: str
    """Ends in the version: http://127.0.0.1:8000/v1."""
    key: str = field(default="", repr=False)
    advice: str = ""
    """Said too where it cannot be reached."""

    def ask(self, body: Json) -> Generator[Json, None, None]:
        """The chunks of a streamed answer; a first one of ours names what the gateway changed."""
        with self._open("POST", "/chat/completions", _CHAT_SECONDS, body) as answer:
            if warnings := answer.headers.get("x-usetool-warnings"):
                yield {"warnings": warnings}
            yield from _chunks(answer)

    def get(self, path: str) -> Any:
        with self._open("GET", path, _LOOK_SECONDS) as answer:
            try:
                return json.load(answer)
            except ValueError as error:
                raise Failed(f"{self.url}{path} does not answer in JSON.") from error

    @contextmanager
    def _open(
        self, method: str, path: str, seconds: float, body: Json | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        where = urlsplit(self.url)
        secure = where.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(where.hostname or "", where.port, timeout=seconds)
        try:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, where.path + path, sent, self._headers())
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise Failed(_reason(answer.status, answer.read(1 << 20)))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failed(
                f"{self.url} cannot be reached or broke off: {why}.{self.advice}"
            ) from error
        finally:
            connection.close()

    def _headers(self) -> Mapping[str, str]:
        headers = {"Content-Type": "application/json"}
        return headers | {"Authorization": f"Bearer {self.key}"} if self.key else headers


def _reason(status: int, body: bytes) -> str:
    try:
        return f"{status}: {json.loads(body)['error']['message']}"
    except (ValueError, LookupError, TypeError):
        return f"{status}: {body[:300].decode('utf-8', 'replace')}"


def _chunks(answer: http.client.HTTPResponse) -> Iterator[Json]:
    for line in answer:
        name, _, data = line.partition(b":")
        if name != b"data" or data.strip() == b"[DONE]":
            continue
        try:
            chunk: Json = json.loads(data)
        except ValueError as error:
            raise Failed(f"A part of the answer is no JSON: {error}.") from error
        if failure := chunk.get("error"):
            raise Failed(str(failure.get("message") if isinstance(failure, dict) else failure))
        yield chunk


def address(url: str) -> str:
    """What people write for a gateway → its address up to the version."""
    url = url if "://" in url else f"http://{url}"
    url = url.rstrip("/").removesuffix("/chat/completions")
    return url if urlsplit(url).path else f"{url}/v1"


def models(endpoint: GatewayAddress) -> list[str]:
    """The names of the models that can answer now; a pattern is no name."""
    listing = endpoint.get("/models")
    if not isinstance(listing, dict) or not isinstance(listing.get("data"), list):
        raise Failed(f"{endpoint.url}/models is no list of models: is that a gateway?")
    return [
        entry["id"]
        for entry in listing["data"]
        if "*" not in entry["id"] and entry.get("x_usetool", {}).get("available", True)
    ]


def require(endpoint: GatewayAddress, model: str, names: Sequence[str]) -> None:
    """Raise `Failed` if a model cannot be asked; of a pattern's models not all may be listed."""
    if model in names:
        return
    entry = endpoint.get(f"/models/{quote(model)}")
    about = entry.get("x_usetool", {}) if isinstance(entry, dict) else {}
    if not about.get("available", True):
        raise Failed(f"The model '{model}' cannot answer now: {about.get('reason')}")
