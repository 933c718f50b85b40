"""Services people know by name: which kind speaks to each, where it is, what its key is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from middleware.config.hints import path_of


class Service(NamedTuple):
    kind: str
    base_url: str = ""
    """Where it is if the config does not say; empty: the kind knows, or the config has to say."""
    variable: str = ""
    """The environment variable its key usually stands in."""


# By the names LiteLLM has for them.
SERVICES: Mapping[str, Service] = {
    "anthropic": Service("claude", variable="ANTHROPIC_API_KEY"),
    "deepseek": Service("deepseek", variable="DEEPSEEK_API_KEY"),
    "openai": Service("compatible", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "cerebras": Service("compatible", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "groq": Service("compatible", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Service("compatible", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": Service("compatible", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "nvidia_nim": Service(
        "compatible", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"
    ),
    "openrouter": Service("compatible", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "sambanova": Service("compatible", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together_ai": Service("compatible", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    "xai": Service("compatible", "https://api.x.ai/v1", "XAI_API_KEY"),
}
# What else people write for `kind`; servers of one's own with the port they usually have.
_MEANT: Mapping[str, Service] = {
    "dashscope": Service(
        "compatible", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"
    ),
    "gemini": Service(
        "compatible", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"
    ),
    "siliconflow": Service("compatible", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
    "zhipu": Service("compatible", "https://open.bigmodel.cn/api/paas/v4", "ZHIPU_API_KEY"),
    "llamacpp": Service("compatible", "http://127.0.0.1:8080/v1"),
    "lmstudio": Service("compatible", "http://127.0.0.1:1234/v1"),
    "sglang": Service("compatible", "http://127.0.0.1:30000/v1"),
    "vllm": Service("compatible", "http://127.0.0.1:8000/v1"),
    "custom": Service("compatible", "https://…/v1"),
    "litellm": Service("longtail"),
    "mock": Service("scripted"),
}
_ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("bailian", "qwen", "tongyi", "aliyun"), "dashscope"),
    **dict.fromkeys(("google", "googleai"), "gemini"),
    **dict.fromkeys(("llamaserver", "llamafile", "koboldcpp", "localai"), "llamacpp"),
    **dict.fromkeys(("zai", "glm", "bigmodel", "zhipuai"), "zhipu"),
    **dict.fromkeys(("openaicompatible", "openailike", "oneapi", "newapi"), "custom"),
    **dict.fromkeys(("bedrock", "azure", "azureopenai", "vertex", "vertexai", "cohere"), "litellm"),
    **dict.fromkeys(("fake", "test", "rules"), "mock"),
    "claude3": "anthropic",
    "gpt": "openai",
    "chatgpt": "openai",
    "grok": "xai",
    "hostedvllm": "vllm",
    "kimi": "moonshot",
    "nvidia": "nvidia_nim",
    "ollamachat": "ollama",
    "together": "together_ai",
    "openaichat": "openai",
}


def meant(kind: str) -> Service | None:
    """The service that somebody means who writes its name for a kind."""
    plain = "".join(filter(str.isalnum, kind.lower()))
    name = _ALIASES.get(plain, plain)
    known = {"".join(filter(str.isalnum, one)): one for one in SERVICES}
    if name == "ollama":
        return Service("ollama")
    return _MEANT.get(name) or SERVICES.get(name) or SERVICES.get(known.get(name, ""))


def stanza(upstream: str, service: Service) -> str:
    """What to write for it, line by line."""
    lines = [f"[{path_of('upstreams', upstream)}]", f'kind = "{service.kind}"']
    lines += [f'base_url = "{service.base_url}"'] if service.base_url else []
    lines += [f'api_key = "env:{service.variable}"'] if service.variable else []
    return "".join([f"\n  {line}" for line in lines])
