"""What is said at addresses the gateway does not have: which setting leads to those it has."""

from __future__ import annotations

import re
from typing import NamedTuple

from adapters.errors import BadRequest

CHAT = "/v1/chat/completions"
_SHOWN = 100
_CAN = "opencode, Cline, Continue, Qwen Code and aider"


class _Sign(NamedTuple):
    path: re.Pattern[str]
    text: str
    status: int = 404


# By path alone, whatever the method: clients ask with several before they say what is wrong.
_OTHER_APIS = (
    _Sign(
        re.compile(r".*/responses(/.*)?"),
        "This gateway speaks chat completions, not the Responses API. Point the client at "
        f"POST {CHAT}: in the OpenAI SDK call client.chat.completions, in LangChain set "
        "use_responses_api=False, in the Vercel AI SDK use openai.chat(model), in the OpenAI "
        "Agents SDK OpenAIChatCompletionsModel, in n8n and LobeChat switch the Responses API off. "
        "Codex speaks only the Responses API and cannot use this version of the gateway; "
        f"{_CAN} can.",
    ),
    _Sign(
        re.compile(r".*/messages(/.*)?"),
        "This gateway speaks OpenAI chat completions, not the Anthropic Messages API. Claude Code "
        f"cannot use this version of the gateway; {_CAN} can. In other clients choose the 'OpenAI "
        "compatible' provider instead of Anthropic, with this server's /v1 as its base URL; it "
        f"posts to {CHAT}.",
        # Claude Code hides the text of a 404 ("issue with the selected model").
        400,
    ),
    _Sign(
        re.compile(r"(/v1)?/api(/.*)?"),
        "This gateway speaks OpenAI chat completions, not Ollama's API. Choose the client's "
        "'OpenAI' or 'OpenAI compatible' provider instead of Ollama, with this server's /v1 as its "
        "base URL: in Open WebUI a connection of the OpenAI API, in Continue provider: openai, in "
        "LangChain ChatOpenAI. A client that has no such provider cannot use this version of the "
        "gateway.",
    ),
    _Sign(
        re.compile(r"(/v1)?/completions"),
        f"This gateway has no text completions. Use chat completions: POST {CHAT} with 'messages'.",
    ),
)
_WITHOUT_BASE = ("/chat/completions", "/models", "/embeddings")


def closed(door: str) -> BadRequest:
    """Of a protocol that the config has switched off."""
    return BadRequest(
        f"This gateway does not serve the door '{door}': its config leaves it out. Add it to "
        "`doors` under [server], or point the client at another address: GET /docs shows all.",
        status=501,
        code="door_closed",
    )


def unknown_url(method: str, path: str) -> BadRequest:
    for sign in _OTHER_APIS:
        if sign.path.fullmatch(path):
            return BadRequest(sign.text, status=sign.status, code="unsupported_api")
    shown = path[:_SHOWN]
    if path.rstrip("/").endswith(_WITHOUT_BASE):
        text = (
            f"The path is {CHAT}, and this was {shown}. Clients add /chat/completions themselves, "
            "so their base URL must end in /v1."
        )
    else:
        text = (
            f"Unknown request URL: {method[:20]} {shown}. The endpoints are POST {CHAT}, "
            "POST /v1/embeddings, GET /v1/models and GET /healthz; GET /docs shows all. Clients "
            "add the part behind /v1 themselves, so their base URL must end in /v1."
        )
    return BadRequest(text, status=404, code="unknown_url")


def wrong_method(method: str, path: str, allowed: str) -> BadRequest:
    return BadRequest(
        f"Method {method[:20]} is not allowed on {path[:_SHOWN]}: send {allowed}. GET /docs shows "
        "what there is.",
        status=405,
        code="method_not_allowed",
    )
