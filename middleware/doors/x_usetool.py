"""What every door tells of the gateway's own: headers and members named `x-usetool`, and usage."""

from __future__ import annotations

from adapters.protocol import Journey, Json, Usage
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


def route_headers(journey: Journey) -> dict[str, str]:
    """Who was considered, in order, and who answered."""
    told = route_object(journey)
    headers = {"x-usetool-model": told["model"]} if "model" in told else {}
    if "route" in told:
        headers["x-usetool-route"] = ", ".join(told["route"])
    return {name: _in_header(value) for name, value in headers.items()}


def route_object(journey: Journey) -> Json:
    """The same where it is too late for headers."""
    if not journey.steps:
        return {}
    answered = journey.answered()
    return {"route": journey.told()} | ({"model": answered.place} if answered else {})


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
