"""Services and servers that speak OpenAI's chat completions, by the names people know them by."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.kind import Service


def _at(address: str, variable: str = "", *aliases: str) -> Service:
    return Service("compatible", address, variable, aliases)


SERVICES: Mapping[str, Service] = {
    # By the names LiteLLM has for them.
    "openai": _at("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt", "chatgpt", "openaichat"),
    "cerebras": _at("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "groq": _at("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": _at("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": _at("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi"),
    "nvidia_nim": _at("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY", "nvidia"),
    "openrouter": _at("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "sambanova": _at("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together_ai": _at("https://api.together.ai/v1", "TOGETHER_API_KEY", "together"),
    "xai": _at("https://api.x.ai/v1", "XAI_API_KEY", "grok"),
    # What else people write for `kind`.
    "dashscope": _at(
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        *("bailian", "qwen", "tongyi", "aliyun"),
    ),
    "gemini": _at(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        *("google", "googleai"),
    ),
    "siliconflow": _at("https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
    "zhipu": _at(
        "https://open.bigmodel.cn/api/paas/v4",
        "ZHIPU_API_KEY",
        *("zai", "glm", "bigmodel", "zhipuai"),
    ),
    # Servers of one's own, with the port they usually have.
    "llamacpp": _at(
        "http://127.0.0.1:8080/v1", "", "llamaserver", "llamafile", "koboldcpp", "localai"
    ),
    "lmstudio": _at("http://127.0.0.1:1234/v1"),
    "sglang": _at("http://127.0.0.1:30000/v1"),
    "vllm": _at("http://127.0.0.1:8000/v1", "", "hostedvllm"),
    "custom": _at("https://…/v1", "", "openaicompatible", "openailike", "oneapi", "newapi"),
}
