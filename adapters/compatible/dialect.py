"""How much of OpenAI's language a server understands."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from adapters.kind import Settings
from adapters.options import ANY_TEXT, FLAG, option, overridden, whole

_OPENAI = (".openai.com", ".openai.azure.com")


@dataclass(frozen=True, slots=True)
class Options:
    max_tokens: int | None = option("Longest answer if the client does not say", whole(1))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How much of OpenAI's language a server understands; each may be set as an ability."""

    custom_tools: bool = option(
        "It takes free-text tools; else each is sent as a function with one string", FLAG, False
    )
    allowed_tools: bool = option(
        "It takes a choice among some of the tools; else the others are left out, and its cache "
        "starts anew",
        FLAG,
        False,
    )
    developer_role: bool = option(
        "It knows the role `developer`; else `system` is sent, which every server knows",
        FLAG,
        False,
    )
    stream_options: bool = option("It takes `stream_options`", FLAG, True)
    # OpenAI itself answers them with a 400.
    extra_fields: bool = option("It takes fields OpenAI does not have", FLAG, True)
    reasoning_echo: bool = option(
        "It wants its own thoughts back in assistant messages (OpenRouter, vLLM)", FLAG, False
    )
    vision: bool | None = option("It reads images", FLAG)
    limit_field: str = option(
        "The one name it has for the longest answer; empty: both are known, sent as given",
        ANY_TEXT,
        "",
    )
    longest: int | None = None
    """Sent where the client set no limit."""


def dialect(settings: Settings[Options]) -> Dialect:
    """OpenAI's hosts speak all of it; of any other server only the common part is expected."""
    host = urlsplit(settings.link.base_url).hostname or ""
    own = f".{host}".endswith(_OPENAI)
    guess = Dialect(
        custom_tools=own,
        allowed_tools=own,
        developer_role=own,
        extra_fields=not own,
        # Its reasoning models refuse the older name, and no model of it refuses the newer.
        limit_field="max_completion_tokens" if own else "",
        longest=settings.options.max_tokens,
    )
    return overridden(guess, settings.abilities)
