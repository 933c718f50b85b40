"""What every door tells of the gateway's own: headers and members named `x-usetool`, and usage."""

from __future__ import annotations

from adapters.outcomes import RouteSummary
from adapters.protocol import Json, Usage
from adapters.receipts import Receipt


def usage_object(usage: Usage) -> Json:
    """Only what the upstream reported; `total` is the sum, as at OpenAI."""
    figures: Json = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }
    prompt = {}
    if usage.cached is not None:
        prompt["cached_tokens"] = usage.cached
    if usage.cache_write is not None:
        prompt["cache_write_tokens"] = usage.cache_write
    if prompt:
        figures["prompt_tokens_details"] = prompt
    if usage.reasoning is not None:
        figures["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    for name, more in usage.extra.items():
        figures[name] = {**more, **figures.get(name, {})} if isinstance(more, dict) else more
    return figures


def usage_parts(usage: Usage | None) -> Json:
    """What each model of a pipeline used; null where it did not say."""
    return {
        name: None if part is None else usage_object(part)
        for name, part in (usage.parts if usage else ())
    }


def route_headers(route: RouteSummary) -> dict[str, str]:
    """Who was considered, in order, and who answered."""
    headers = {"x-usetool-model": _in_header(route.answered)} if route.answered else {}
    if route.steps:
        headers["x-usetool-route"] = _in_header(", ".join(route.steps))
    return headers


def route_object(route: RouteSummary) -> Json:
    """The same where it is too late for headers."""
    if not route.steps:
        return {}
    return {"route": route.steps} | ({"model": route.answered} if route.answered else {})


def warnings_object(receipt: Receipt) -> Json:
    return {"warnings": [note._asdict() for note in receipt]}


def cost_header(cost: float) -> str:
    """USD, without an exponent."""
    return f"{cost:.12f}".rstrip("0").rstrip(".")


def warnings_header(receipt: Receipt) -> str:
    """`code:field` of each note; texts are in the log and in `explain`."""
    shown = dict.fromkeys(
        f"{note.code}:{note.field}" if note.field else note.code for note in receipt
    )
    return _in_header(", ".join(shown))


def _in_header(text: str) -> str:
    # A field, or what stands for a *, may have any name a client gave it, line breaks included.
    header = text.encode("unicode_escape").decode()
    return header if len(header) <= 2000 else header[:2000].rsplit(", ", 1)[0] + ", more"
