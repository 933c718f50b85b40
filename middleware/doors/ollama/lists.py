"""A model of the list as Ollama describes one. Clients in Go and Rust want every member there."""

from __future__ import annotations

import re
from hashlib import sha256

from adapters.protocol import Json

_WHEN = "2026-01-01T00:00:00Z"
"""Of every model: it must not move."""
_USUAL_LENGTH = 32_768
"""Where nobody knows it. Clients cut prompts to it, so not the 4096 some of them take for usual."""
_ABILITIES = (("vision", "vision"), ("reasoning", "thinking"))


def tag(model: Json) -> Json:
    """A line of `/api/tags`."""
    name = model["id"]
    return {
        "name": name,
        "model": name,
        "modified_at": _WHEN,
        "size": 1,  # of 0 some clients say that it is broken
        "digest": sha256(name.encode()).hexdigest(),
        "details": {**_details(model), "context_length": _length(model)},
        "capabilities": _capabilities(model),
    }


def shown(model: Json) -> Json:
    """What `/api/show` says."""
    family = _family(model)
    return {
        "license": "",
        "modelfile": f"# {model['id']}, served by Usetool",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _details(model),
        "model_info": {
            "general.architecture": family,
            "general.basename": model["id"],
            "general.parameter_count": 0,
            f"{family}.context_length": _length(model),
            f"{family}.embedding_length": 1,
        },
        "capabilities": _capabilities(model),
        "modified_at": _WHEN,
    }


def _details(model: Json) -> Json:
    family = _family(model)
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": "",
        "quantization_level": "",
    }


def _abilities(model: Json) -> Json:
    abilities: Json = model.get("x_usetool", {}).get("abilities", {})
    return abilities


def _family(model: Json) -> str:
    """A word: it stands in front of a dot."""
    return re.sub(r"[^\w-]+", "", str(_abilities(model).get("family") or "")) or "unknown"


def _length(model: Json) -> int:
    length: int = model.get("context_length") or _USUAL_LENGTH
    return length


def _capabilities(model: Json) -> list[str]:
    """Tools have all: those that a model lacks are made by prompt."""
    abilities = _abilities(model)
    return ["completion", "tools", *(word for name, word in _ABILITIES if abilities.get(name))]
