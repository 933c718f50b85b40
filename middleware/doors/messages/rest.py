"""What a request says beside its messages and tools."""

from __future__ import annotations

from adapters.errors import BadRequest
from adapters.protocol import Carried, ChatRequest, Json, RequestContext, value_class
from adapters.receipts import Receipt
from middleware.doors.body import asked_so
from middleware.doors.messages.answer import weight_of
from middleware.doors.messages.conversation import system_messages
from middleware.doors.messages.fields import losses_of, params_of, refused_of
from middleware.doors.messages.tools import ReadTools, read_choice
from middleware.doors.messages.words import LANGUAGE

_NOT_NATIVE = ("model", "messages", "stream", "betas")


@value_class
class RestOfRequest:
    """Nobody changes it: it may be that of many requests."""

    model: str
    streamed: bool
    system: list[Json]
    params: Json
    extra: Json
    choice: Json | None
    own: Json
    """Members as the client said them; where it has tools, something stands for those."""
    lost: Receipt
    refused: str
    """A field that only Claude can take."""
    weight: int
    """Of the system prompt, for the estimate."""

    def request(
        self, messages: tuple[Json, ...], tools: ReadTools, call: RequestContext
    ) -> ChatRequest:
        """The whole, with all that only Claude reads beside it."""
        functions, declared, params, choice = tools.functions, tools.declared, self.params, None
        if self.choice is not None:
            choice, parallel = read_choice(self.choice, tools)
            if functions and not parallel:
                params = {**params, "parallel_tool_calls": False}
        beside = {**params, **self.extra, "tools": functions, "tool_choice": choice}
        own = {**self.own, "tools": declared} if declared else self.own
        refusal = self._refusal(tools) if tools.hosted or self.refused else None
        lost = tools.lost + self.lost
        native = Carried(LANGUAGE, own, lost, refusal, beside, tools.search, tools.marked)
        return ChatRequest(
            model=self.model,
            messages=messages,
            tools=functions,
            tool_choice=choice,
            params=params,
            extra=self.extra,
            call=asked_so(call, self.streamed),
            native=native,
        )

    def _refusal(self, tools: ReadTools) -> BadRequest | None:
        if name := self.refused:
            text = f"{name}: only Claude can take '{name}' as it was sent. Leave it out."
            return BadRequest(text, param=name, code="unsupported_parameter")
        return tools.refusal(self.choice)


def read_rest(data: Json) -> RestOfRequest:
    """Read what was validated; where messages and tools are, nobody looks."""
    own = {name: value for name, value in data.items() if name not in _NOT_NATIVE}
    system = system_messages(data.get("system"))
    if system:
        del own["system"]  # its message carries it
    return RestOfRequest(
        model=data["model"],
        streamed=data.get("stream") is True,
        system=system,
        params=params_of(data),
        extra={} if data.get("top_k") is None else {"top_k": data["top_k"]},
        choice=data.get("tool_choice"),
        own=own,
        lost=losses_of(data),
        refused=refused_of(data),
        weight=sum(map(weight_of, system)),
    )
