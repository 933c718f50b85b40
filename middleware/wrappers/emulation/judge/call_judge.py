"""What becomes of each call that was read: it is passed on, stays open at fault, or is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapters.protocol import Event, FinishReason
from adapters.receipts import Code, Note
from adapters.shared.calls import MOST_CALLS, Calls, too_many
from adapters.shared.schema.walk import properties
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.ask.prompt import PLACEHOLDERS
from middleware.wrappers.emulation.formats.raw_call import Fault, RawCall, Ready
from middleware.wrappers.emulation.judge.arguments import as_text, settle
from middleware.wrappers.emulation.judge.names import Names, plain

_MOST_NOTES = 16


class CallJudge:
    """The calls of one answer. Everybody may look, only these methods write."""

    def __init__(self, tools: Sequence[Tool], names: Names, calls: Calls, withheld: bool) -> None:
        self.names = names
        self.reason: FinishReason = "stop"
        """Why the text ended."""
        self.made: list[Ready] = []
        """The calls passed on."""
        self.open: list[Ready | Fault] = []
        """The calls from the first faulty one on, in order."""
        self.dropped = 0
        """Calls that were not allowed, or cut by the end."""
        self.notes: dict[str, Note] = {}
        """What was read otherwise than it was written, once for each code and text."""
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._calls = calls
        self._withheld = withheld

    def pass_on(self, raw: RawCall) -> Iterable[Event]:
        """The events of a call; none if it, or one before it, is at fault."""
        if self._withheld or (not raw.whole and self.reason == "length"):
            self.drop()
            return ()
        call = self._settled(raw)
        if isinstance(call, Fault) or self.open:
            self.keep_open(call)
            return ()
        self.made.append(call)
        return self._calls.whole(len(self.made) - 1, None, *call)

    def keep_open(self, call: Ready | Fault) -> None:
        if len(self.made) + len(self.open) >= MOST_CALLS:
            raise too_many()
        self.open.append(call)

    def drop(self) -> None:
        self.dropped += 1

    def note(self, code: Code, text: str) -> None:
        if len(self.notes) >= _MOST_NOTES:
            text = "further ones, of the same kind"
        self.notes[code + text] = Note(code, "tool_calls", text)

    def close(self) -> Iterable[Event]:
        """The end of the calls, if none waits for its correction."""
        return () if self.open else self._calls.close()

    def unknown(self, raws: Sequence[RawCall]) -> str:
        """The first of the names that no tool has; one is enough to ask about them all."""
        return next((raw.name for raw in raws if self.names.find(raw.name) is None), "")

    def no_tool(self, name: str, text: str) -> Fault:
        text = "" if name in PLACEHOLDERS else text  # our own words, repeated
        return Fault("unknown_tool", name, f"there is no tool {name[:80]!r}", None, text)

    def is_certain(self, raws: Sequence[RawCall]) -> bool:
        """Do the schemas take the arguments as they are?"""
        try:
            return not any(
                settle(raw.arguments, self._schemas[raw.name], raw.name).wrong for raw in raws
            )
        except ValueError:
            return False

    def schema_of(self, written: str) -> dict[str, object] | None:
        name = self.names.find(written)
        return None if name is None else self._schemas[name]

    def parameters(self, written: str) -> frozenset[str]:
        """The plain names of a tool's parameters; of every tool's where the name is not known."""
        name = self.names.find(written)
        schemas = self._schemas.values() if name is None else (self._schemas[name],)
        return frozenset(plain(member) for schema in schemas for member in properties(schema))

    def _settled(self, raw: RawCall) -> Ready | Fault:
        """The call as it may be passed on, or what is wrong with it."""
        text = f"{raw.name} {as_text(raw.arguments)}".strip()
        name = self.names.find(raw.name)
        if name is None:
            return self.no_tool(raw.name, text)
        if name not in raw.name:
            self.note("tool_name_read", f"{raw.name[:80]!r} was read as the tool {name!r}")
        schema = self._schemas[name]
        try:
            _require_end(raw, schema)
            arguments = settle(raw.arguments, schema, name)
        except ValueError as error:
            return Fault("unreadable_arguments", name, str(error), None, text)
        ready = Ready(name, arguments.text)
        if not arguments.wrong:
            return ready
        return Fault("schema", name, arguments.wrong, ready if arguments.given else None, text)


def _require_end(raw: RawCall, schema: dict[str, object]) -> None:
    if raw.unfinished and properties(schema):
        raise ValueError("the call is not closed")
    if raw.bare and properties(schema):
        raise ValueError("the arguments are missing")
