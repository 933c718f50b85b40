"""One conversation: asks, shows what streams in, runs the tools that are called, asks again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from middleware.cli.chat.screen import Screen
from middleware.cli.chat.tools import ChatTool
from middleware.cli.command import Failed
from middleware.cli.endpoint import Json

_MOST_ROUNDS = 10
Ask = Callable[[Json], Generator[Json, None, None]]


@dataclass(slots=True)
class _Reply:
    """An assistant's message while it streams in."""

    text: str = ""
    calls: dict[int, Json] = field(default_factory=dict)
    finish: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    def call(self, piece: Mapping[str, Any]) -> None:
        new = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self.calls.setdefault(piece["index"], new)
        call["id"] = piece.get("id") or call["id"]
        function, more = call["function"], piece.get("function") or {}
        function["name"] = more.get("name") or function["name"]
        function["arguments"] += more.get("arguments") or ""

    def message(self) -> Json:
        message: Json = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = list(self.calls.values())
        return message


@dataclass(slots=True)
class Dialogue:
    ask: Ask
    model: str
    screen: Screen
    tools: tuple[ChatTool, ...] = ()
    messages: list[Json] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Say something and show all that follows; what failed was never said."""
        messages = [*self.messages, {"role": "user", "content": text}]
        try:
            self._answer(messages)
        finally:
            self.screen.end()
        self.messages = messages

    def _answer(self, messages: list[Json]) -> None:
        for _ in range(_MOST_ROUNDS):
            reply = self._reply(messages)
            messages.append(reply.message())
            if not reply.calls:
                return
            messages.extend(self._run(call) for call in reply.calls.values())
        self.screen.note(f"(stopped after {_MOST_ROUNDS} rounds of tool calls)")

    def _reply(self, messages: list[Json]) -> _Reply:
        reply = _Reply()
        with closing(self.ask(self._body(messages))) as chunks:
            self._take(chunks, reply)
        if not reply.finish:
            raise Failed("The answer broke off before its end.")
        if reply.finish not in ("stop", "tool_calls"):
            self.screen.note(f"(ended: {reply.finish})")
        if reply.usage:
            sent, received = reply.usage["prompt_tokens"], reply.usage["completion_tokens"]
            self.screen.note(f"({sent} tokens in, {received} out)")
        return reply

    def _body(self, messages: list[Json]) -> Json:
        body: Json = {
            "model": self.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.tools:
            body["tools"] = [tool.schema() for tool in self.tools]
        return body

    def _take(self, chunks: Iterable[Json], reply: _Reply) -> None:
        for chunk in chunks:
            if "warnings" in chunk:
                self.screen.note(f"(changed on the way: {chunk['warnings']})")
            reply.usage = chunk.get("usage") or reply.usage
            for choice in chunk.get("choices", ()):
                reply.finish = choice.get("finish_reason") or reply.finish
                self._delta(choice.get("delta") or {}, reply)

    def _delta(self, delta: Mapping[str, Any], reply: _Reply) -> None:
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            self.screen.thought(thought)
        if text := delta.get("content") or delta.get("refusal"):
            reply.text += text
            self.screen.text(text)
        for piece in delta.get("tool_calls") or ():
            reply.call(piece)

    def _run(self, call: Json) -> Json:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        self.screen.call(name, arguments)
        tool = next((tool for tool in self.tools if tool.name == name), None)
        result = tool.answer(arguments) if tool else '{"error": "there is no such tool"}'
        self.screen.result(result)
        return {"role": "tool", "tool_call_id": call["id"], "content": result}
