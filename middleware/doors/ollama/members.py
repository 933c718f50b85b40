"""What an Ollama request says beside its messages → OpenAI's fields, and what only an Ollama takes.

`num_ctx` and what is about hardware every client sends, whatever it is: without an Ollama behind
the gateway that is no loss worth a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Carried, Json, value_class
from adapters.receipts import Note

LANGUAGE = "ollama"
_SAME = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "stop")
_READ = frozenset((*_SAME, "num_predict"))
_MISSED = ("top_k", "min_p", "repeat_penalty", "typical_p")
"""Options that change what is said."""
_OF_SERVER = ("keep_alive", "truncate", "shift")
_EFFORTS: Mapping[str | bool, str] = {
    # True says no more than that it thinks: an effort in the middle.
    True: "medium",
    False: "none",
    **{word: word for word in ("low", "medium", "high", "max")},
}
_WHOLE = re.compile(r"-?\d{1,18}")
_MOST_LOGPROBS = 20


@value_class
class OllamaFields:
    """What a request says beside messages and tools. Nobody changes it: many may say the same."""

    name: str
    """Of the model, as the client said it."""
    streamed: bool
    params: Json
    native: Carried | None
    unloads: bool


def read_fields(data: Json) -> OllamaFields:
    return OllamaFields(
        name=data["model"],
        streamed=data.get("stream") is not False,
        params=_params(data),
        native=_native(data),
        unloads=_is_unloading(data),
    )


def _params(data: Json) -> Json:
    """OpenAI's fields; what is not said is not there."""
    options = data.get("options") or {}
    found = _given(options, _SAME)
    if stops := _stops(found.pop("stop", None)):
        found["stop"] = stops
    if (most := options.get("num_predict")) is not None and most > 0:
        found["max_completion_tokens"] = most
    if effort := _effort(data.get("think")):
        found["reasoning_effort"] = effort
    if form := _response_format(data.get("format")):
        found["response_format"] = form
    return found | _logprobs(data)


def _stops(stop: Any) -> Any:
    return [stop] if stop and isinstance(stop, str) else stop


def _native(data: Json) -> Carried | None:
    """What an Ollama upstream gets as it was said."""
    said = _given(data, _OF_SERVER)
    if isinstance(stay := said.get("keep_alive"), str) and _WHOLE.fullmatch(stay):
        said["keep_alive"] = int(stay)  # Ollama itself would miss the unit
    options = data.get("options") or {}
    if own := _given(options, [name for name in options if name not in _READ]):
        said["options"] = own
    text = "only an Ollama upstream has it"
    lost = [Note("parameter_dropped", f"options.{name}", text) for name in _given(own, _MISSED)]
    return Carried(LANGUAGE, said, tuple(lost)) if said else None


def _given(holder: Json, names: Iterable[str]) -> Json:
    """Those members that are there: null is none."""
    return {name: holder[name] for name in names if holder.get(name) is not None}


def _is_unloading(data: Json) -> bool:
    """Whether the model is not to stay loaded."""
    return str(data.get("keep_alive")).rstrip("hms") in ("0", "0.0")


def _effort(think: Any) -> str:
    if think is None or think == "":
        return ""
    effort = _EFFORTS.get(think) if isinstance(think, bool | str) else None
    if effort is None:
        raise BadRequest(
            "Invalid value for 'think': expected true, false, 'low', 'medium', 'high' or 'max'.",
            param="think",
        )
    return effort


def _response_format(value: Any) -> Json | None:
    if value in (None, ""):
        return None
    if value == "json":
        return {"type": "json_object"}
    if isinstance(value, dict):
        return {"type": "json_schema", "json_schema": {"name": "format", "schema": value}}
    raise BadRequest('invalid format: expected "json" or a JSON schema', param="format")


def _logprobs(data: Json) -> Json:
    most = data.get("top_logprobs") or 0
    if not 0 <= most <= _MOST_LOGPROBS:
        told = f"top_logprobs must be between 0 and {_MOST_LOGPROBS}"
        raise BadRequest(told, param="top_logprobs")
    if not data.get("logprobs"):
        return {}
    return {"logprobs": True} | ({"top_logprobs": most} if most else {})
