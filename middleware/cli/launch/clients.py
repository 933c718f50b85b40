"""How clients are pointed at a gateway: variables that all read, and what some need besides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple

ADDRESSES: Mapping[str, str] = {
    "OPENAI_BASE_URL": "{}/v1",
    "OPENAI_API_BASE": "{}/v1",
    "OPENAI_HOST": "{}",
    "USETOOL_URL": "{}",
}
OTHER_ADDRESSES: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "{}",
    "OLLAMA_HOST": "{}",
    "DEEPSEEK_BASE_URL": "{}/v1",
    "DEEPSEEK_API_BASE": "{}/v1",
}
"""Where clients of other protocols than OpenAI's look for their service."""
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY")
"""Of which clients want any."""
_ANY = "none"


class KnownClient(NamedTuple):
    """`{base}` and `{model}` stand for the gateway and the model that is asked."""

    settings: Mapping[str, str] = {}
    """Of its own config, by their places in it."""
    environment: Mapping[str, str] = {}
    without: str = ""
    """A variable that must not be there."""


CLIENTS: Mapping[str, KnownClient] = {
    "codex": KnownClient(
        {
            "model": "{model}",
            "model_provider": "usetool",
            "model_providers.usetool.name": "usetool",
            "model_providers.usetool.base_url": "{base}/v1",
            "model_providers.usetool.wire_api": "responses",
            "model_providers.usetool.env_key": "USETOOL_KEY",
        },
        {"USETOOL_KEY": _ANY},
    ),
    "claude": KnownClient(
        environment={
            "ANTHROPIC_BASE_URL": "{base}",
            "ANTHROPIC_AUTH_TOKEN": _ANY,
            "ANTHROPIC_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_OPUS_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_SONNET_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}",
            "CLAUDE_CODE_SUBAGENT_MODEL": "{model}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        # With both it would send two keys.
        without="ANTHROPIC_API_KEY",
    ),
}


def launched(
    client: str, base: str, model: str, outer: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The beginning of a client's command, and its environment."""
    known = CLIENTS.get(PurePath(client).stem, KnownClient())
    inner = {**outer, **dict.fromkeys(_KEYS, _ANY)}
    inner |= {name: at.format(base) for name, at in {**ADDRESSES, **OTHER_ADDRESSES}.items()}
    inner |= _filled(known.environment, base, model)
    inner.pop(known.without, None)
    settings = _filled(known.settings, base, model)
    command = [
        client,
        *(part for name, said in settings.items() for part in ("-c", f'{name}="{said}"')),
    ]
    return command, without_proxy(inner, outer)


def _filled(said: Mapping[str, str], base: str, model: str) -> dict[str, str]:
    return {name: text.format(base=base, model=model) for name, text in said.items()}


def without_proxy(inner: dict[str, str], outer: Mapping[str, str]) -> dict[str, str]:
    """No proxy stands between a client and the gateway of this machine."""
    for name in ("NO_PROXY", "no_proxy"):
        others = outer.get(name) or outer.get(name.swapcase(), "")
        inner[name] = others if others == "*" else f"{others},127.0.0.1".lstrip(",")
    return inner
