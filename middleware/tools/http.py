"""Tables of kind `http`: one call of a service, its address and body made of the arguments."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from yarl import URL

from adapters.protocol import Json
from middleware.config import ToolConfig
from middleware.config.tools import PLACEHOLDER, secrets_of
from middleware.tools.addresses import Destination, Guard, connector_to
from middleware.tools.foreign import Raised, attempt
from middleware.tools.results import image_part, picture
from middleware.tools.table import Declared, Derived, TableContext, declared
from middleware.tools.tool import CallFailed, Content, ToolContext, ToolResult

_MOST_REDIRECTS = 3
_SHOWN = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_EVERYTHING: Mapping[str, Any] = {"type": "object", "properties": {}}


class WebRequest(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class WebAnswer(NamedTuple):
    status: int
    content_type: str
    charset: str | None
    body: bytes
    whole: bool
    """It was read to its end."""

    def content(self) -> Content:
        """What a model gets of it, or raise `CallFailed`."""
        if not 200 <= self.status < 300:
            raise CallFailed(f"status {self.status}: {self._text('replace')[:_SHOWN]}".strip())
        kind = picture(self.body)
        if kind or (self.content_type.startswith("image/") and "svg" not in self.content_type):
            return [image_part(self.body, kind or self.content_type)]
        try:
            return self._text("strict")
        except UnicodeDecodeError as error:
            told = f"the answer is no text: content type {self.content_type}"
            raise CallFailed(told) from error

    def _text(self, errors: str) -> str:
        try:
            decoder = codecs.getincrementaldecoder(self.charset or "utf-8")(errors)
        except LookupError:
            decoder = codecs.getincrementaldecoder("utf-8")(errors)
        return decoder.decode(self.body, final=self.whole)


async def fetch(request: WebRequest, guard: Guard, most: int) -> WebAnswer:
    """Ask, and follow redirects by GET; headers go to the first origin alone."""
    first: URL | None = None
    for _ in range(_MOST_REDIRECTS + 1):
        destination = await guard.destination(request.url)
        first = first or destination.url.origin()
        if destination.url.origin() != first:
            request = request._replace(headers={})
        try:
            found = await _ask(request, destination, most)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            told = f"{destination.url.host} did not answer: {type(error).__name__}"
            raise CallFailed(told) from error
        if isinstance(found, WebAnswer):
            return found
        request = WebRequest("GET", _joined(destination.url, found), request.headers)
    raise CallFailed(f"more than {_MOST_REDIRECTS} redirects")


async def _ask(request: WebRequest, destination: Destination, most: int) -> WebAnswer | str:
    """The answer, or where it is to be looked for."""
    async with (
        _session(connector_to(destination)) as session,
        session.request(
            request.method,
            destination.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
        ) as response,
    ):
        target = response.headers.get("location")
        if response.status in _REDIRECTS and target is not None:
            return target
        return await _read(response, most)


@asynccontextmanager
async def _session(connector: aiohttp.TCPConnector) -> AsyncIterator[aiohttp.ClientSession]:
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"user-agent": "usetool"},
        skip_auto_headers=("content-type",),
    )
    try:
        yield session
    finally:
        await session.close()


def _joined(url: URL, target: str) -> str:
    """A redirect's target; what is no address stays as it is and is refused."""
    joined = attempt(lambda: str(url.join(URL(target))))
    return target if isinstance(joined, Raised) or "\\" in target else joined


async def _read(response: aiohttp.ClientResponse, most: int) -> WebAnswer:
    body, whole = bytearray(), True
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > most:
            whole = False
            break
    kind = response.content_type if "content-type" in response.headers else "unknown"
    return WebAnswer(response.status, kind, response.charset, bytes(body[:most]), whole)


@dataclass(frozen=True)
class HttpTool(Declared):
    config: ToolConfig | None = None
    guard: Guard | None = None

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        assert self.config is not None
        assert self.guard is not None
        self.hold(arguments)
        request = request_of(self.config, arguments)
        answer = await fetch(request, self.guard, self.config.max_bytes)
        return ToolResult(answer.content())


def request_of(config: ToolConfig, arguments: Mapping[str, object]) -> WebRequest:
    """Write the request a call means; pure."""
    template = config.url or ""
    named = PLACEHOLDER.findall(template)
    rest = {name: value for name, value in arguments.items() if name not in named}
    given = PLACEHOLDER.fullmatch(template)
    if given:
        url, headers = str(arguments.get(given[1], "")), {}
    else:
        url = _filled(template, arguments)
        headers = {name: secret.value for name, secret in config.headers.items()}
    method, where = config.method, config.body
    where = where or ("query" if method in ("GET", "HEAD", "DELETE") else "json")
    if where == "query":
        query = urlencode(_pairs(rest), errors="replace")
        joint = "&" if urlsplit(url).query else "?"
        return WebRequest(method, f"{url}{joint}{query}" if query else url, headers)
    if where == "form":
        kind, body = "application/x-www-form-urlencoded", urlencode(_pairs(rest), errors="replace")
    else:
        kind, body = "application/json", json.dumps(rest, ensure_ascii=False)
    told = {"content-type": kind, **headers}
    return WebRequest(method, url, told, body.encode("utf-8", "replace"))


def _filled(template: str, arguments: Mapping[str, object]) -> str:
    """The address with its placeholders filled, each as one segment."""
    path, mark, query = template.partition("?")
    for name in PLACEHOLDER.findall(path):
        value = _word(arguments.get(name, ""))
        if value in ("", ".", ".."):
            raise CallFailed(f"invalid arguments: {name}: '{value}' cannot be a part of a path")
        path = path.replace(f"{{{name}}}", quote(value, safe="", errors="replace"))
    for name in PLACEHOLDER.findall(query):
        value = quote(_word(arguments.get(name, "")), safe="", errors="replace")
        query = query.replace(f"{{{name}}}", value)
    return f"{path}{mark}{query}"


def _pairs(arguments: Mapping[str, object]) -> list[tuple[str, str]]:
    """Lists are repeated, null is left out."""
    return [
        (name, _word(one))
        for name, value in arguments.items()
        for one in (value if isinstance(value, list) else [value])
        if one is not None
    ]


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class WebTable:
    """A table of one tool that needs its secrets, and nothing to be started."""

    def __init__(self, config: ToolConfig, around: TableContext) -> None:
        self.config = config
        self.version = 0
        self.reasons: dict[str, str] = {}
        unset = [secret.variable for secret in secrets_of(config) if not secret.value]
        if unset:
            told = f"the environment variable {', '.join(unset)} is not set"
            self.reasons[config.id] = told

    async def begin(self) -> None:
        """Nothing runs."""

    async def end(self) -> None:
        """Nothing runs."""

    def _take(self, derived: Derived) -> Declared | None:
        if self.reasons:
            return None
        made = attempt(lambda: declared(self.config, derived))
        if isinstance(made, Raised):
            self.reasons[self.config.id] = str(made.error)
            return None
        return made


class HttpTable(WebTable):
    def __init__(self, config: ToolConfig, around: TableContext) -> None:
        super().__init__(config, around)
        made = self._take(Derived("", config.id, "", {**_EVERYTHING}))
        guard = Guard(config.allow, around.threads.share())
        self._tools: Sequence[HttpTool] = (
            [HttpTool(**vars(made), config=config, guard=guard)] if made else []
        )

    def tools(self) -> Sequence[HttpTool]:
        return self._tools
