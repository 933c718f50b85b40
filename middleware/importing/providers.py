"""LiteLLM's providers that our own leaves can speak to; all others stay with LiteLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    kind: str
    base_url: str = ""
    """Where it is if the config does not say; empty: it has to say."""
    variable: str = ""
    """From where LiteLLM takes the key if the config has none."""


class Reached(NamedTuple):
    """Who serves a model, and what it is called there."""

    name: str
    provider: Provider
    model: str


_OPENAI = Provider("compatible", "https://api.openai.com/v1", "OPENAI_API_KEY")
_OLLAMA = Provider("ollama")
_OWN_SERVER = Provider("compatible")
_LONGTAIL = Provider("longtail")

PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("claude", variable="ANTHROPIC_API_KEY"),
    "deepseek": Provider("deepseek", variable="DEEPSEEK_API_KEY"),
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "openai": _OPENAI,
    "cerebras": Provider("compatible", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "groq": Provider("compatible", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("compatible", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": Provider("compatible", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "nvidia_nim": Provider(
        "compatible", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"
    ),
    "openrouter": Provider("compatible", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "sambanova": Provider("compatible", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together_ai": Provider("compatible", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    "xai": Provider("compatible", "https://api.x.ai/v1", "XAI_API_KEY"),
    **dict.fromkeys(
        (
            "aiohttp_openai",
            "custom_openai",
            "dashscope",
            "deepinfra",
            "docker_model_runner",
            "hosted_vllm",
            "litellm_proxy",
            "llamafile",
            "lm_studio",
            "modelscope",
            "novita",
            "openai_like",
            "perplexity",
            "siliconflow",
            "volcengine",
            "xinference",
            "zai",
        ),
        _OWN_SERVER,
    ),
}
# LiteLLM knows these without a provider before them.
_BARE = (("claude", "anthropic"), *((start, "openai") for start in ("gpt-", "chatgpt", "o1", "o3")))


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
