"""LiteLLM's providers that our own leaves can speak to; all others stay with LiteLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from adapters.kind import Service, all_kinds


class Reached(NamedTuple):
    """Who serves a model, and what it is called there."""

    name: str
    provider: Service
    model: str


_OLLAMA = Service("ollama")
_OWN_SERVER = Service("compatible")
_LONGTAIL = Service("longtail")

# LiteLLM calls them as their kinds do, and means the same.
_ALIKE = (
    *("anthropic", "cerebras", "deepseek", "groq", "mistral", "moonshot", "nvidia_nim", "openai"),
    *("openrouter", "sambanova", "together_ai", "xai"),
)
_COMPATIBLE = (
    *("aiohttp_openai", "custom_openai", "dashscope", "deepinfra", "docker_model_runner"),
    *("hosted_vllm", "litellm_proxy", "llamafile", "lm_studio", "modelscope", "novita"),
    *("openai_like", "perplexity", "siliconflow", "volcengine", "xinference", "zai"),
)

PROVIDERS: Mapping[str, Service] = {
    **{
        name: service
        for kind in all_kinds()
        for name, service in kind.services.items()
        if name in _ALIKE
    },
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    **dict.fromkeys(_COMPATIBLE, _OWN_SERVER),
}
# LiteLLM knows these without a provider before them.
_OPENAI = ("gpt-", "chatgpt", "ft:gpt-", "o1", "o3", "o4", "text-embedding-")
_BARE = (("claude", "anthropic"), *((start, "openai") for start in _OPENAI))


def reach(model: str, said: str | None, has_address: bool) -> Reached:
    """Find who serves LiteLLM's `model`; `said` is its `custom_llm_provider`."""
    name, called = _split(model, said)
    provider = PROVIDERS.get(name, _LONGTAIL)
    nowhere = provider is _OWN_SERVER and not has_address
    # The first of these is for OpenAI's other API.
    if called.startswith("responses/") or nowhere or provider is _LONGTAIL:
        return Reached(name, _LONGTAIL, f"{said}/{called}" if said else model)
    return Reached("ollama" if provider is _OLLAMA else name, provider, called)


def _split(model: str, said: str | None) -> tuple[str, str]:
    """LiteLLM writes provider/name, and does without the provider for a few names."""
    first, slash, rest = model.partition("/")
    if said:
        return said, rest if first == said else model
    if slash:
        return first, rest
    return next((name for start, name in _BARE if model.startswith(start)), "litellm"), model
