"""`ServerTool`: something that the gateway runs for a model, and what running it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from typing import NamedTuple, Protocol

from adapters.protocol import Json

Content = str | list[Json]
"""Of a tool message: text, or OpenAI's parts `text` and `image_url`."""
Say = Callable[[str], None]
"""Takes the pieces of a generator as they come, in the event loop."""


class ToolResult(NamedTuple):
    """What a call came to; the text of one that failed begins with `Error: `."""

    content: Content
    failed: bool = False
    seconds: float = 0.0
    characters: int = 0
    """Of its text, before it was cut."""
    cut: bool = False
    sources: tuple[Json, ...] = ()
    """`url_citation` annotations for the message that the client gets."""

    @property
    def text(self) -> str:
        """What of it is no image."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part["text"] for part in self.content if part["type"] == "text")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf tools run: one a request, completed by the shelf for each call."""

    request: str = "req_local"
    client: str = "default"
    """Its name in the config; limits count by it."""
    owner: str = ""
    """Digest of who it is."""
    session: str = ""
    """Digest; what tools keep for a conversation is apart by it."""
    model: str = ""
    """The public name that was asked."""
    workspace: Path | None = None
    """A folder for this session; made when a tool asks for it."""
    counts: Counter[str] = field(default_factory=Counter)
    """Calls of each tool in this request, by id."""
    tool: str = ""
    deadline: float = 0.0
    """Seconds since 1970 at which the call ends."""
    cancelled: Flag = field(default_factory=Flag)
    """Set when nobody waits for the result any more."""
    say: Say | None = None


class ServerTool(Protocol):
    """One tool of a table in the config."""

    @property
    def id(self) -> str:
        """`weather.get_weather`; the table's name alone for tables of one tool."""

    @property
    def name(self) -> str:
        """What the model sees, unless another has the name."""

    @property
    def declaration(self) -> Json:
        """OpenAI's function tool, by `name`."""

    @property
    def timeout(self) -> float:
        """Seconds a call may take."""

    @property
    def searches(self) -> bool:
        """It searches the web, and may stand for a search that others host."""

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        """Run it; raises what the foreign code raises, or `CallFailed`. Only the shelf calls it."""


class Offer(NamedTuple):
    """A tool as one model gets it."""

    tool: ServerTool
    table: str
    """For receipts: `tools.TABLE`."""
    declaration: Json
    """OpenAI's function tool; two of one name in a model are apart here."""

    @property
    def name(self) -> str:
        name: str = self.declaration["function"]["name"]
        return name


class CallFailed(Exception):
    """A call failed in a way that is said in full: the text for the model, without `Error: `."""
