"""What no model and no client may read in a result: secrets of the config, paths of the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from adapters.protocol import Json
from middleware.config import Config, Secret
from middleware.config.tools import secrets_of
from middleware.state.homes import state_folder
from middleware.tools.tool import Content

_SHORTEST = 8
_BLOT = "***"


class Masks:
    def __init__(self, config: Config, folder: Path) -> None:
        secrets = {value for secret in _secrets(config) for value in _parts(secret)}
        # Longer ones first: one may be a part of another.
        self._blots = dict.fromkeys(sorted(secrets, key=len, reverse=True), _BLOT)
        state = state_folder(config)
        paths = (
            f"{state}/",
            f"{folder}/",
            f"{folder}",
            sys.prefix,
            sys.base_prefix,
            str(Path.home()),
        )
        self._paths = {path: "" for path in paths if len(path) > 4 and path != "/root"}
        self._longest = max(map(len, (*self._blots, *self._paths, "")))

    def text(self, text: str) -> str:
        for value, blot in self._blots.items():
            text = text.replace(value, blot)
        return text

    def failure(self, text: str) -> str:
        """Of a failure, in which paths of the machine stand too."""
        for path, short in self._paths.items():
            text = text.replace(path, short)
        return self.text(text)

    def content(self, content: Content, most: int) -> Content:
        """A result; no more of a text is looked at than is sent."""
        if isinstance(content, str):
            return self.text(content[: most + self._longest])
        return [self._part(part) for part in content]

    def _part(self, part: Json) -> Json:
        return {**part, "text": self.text(part["text"])} if part["type"] == "text" else part


def _secrets(config: Config) -> Iterator[Secret]:
    yield from config.client_keys
    for upstream in config.upstreams.values():
        yield from upstream.secrets()
    for tool in config.tools.values():
        yield from secrets_of(tool)
    if config.state.secret is not None:
        yield config.state.secret


def _parts(secret: Secret) -> Iterator[str]:
    """A secret, and what stands behind `Bearer`."""
    for value in {secret.value, secret.value.rpartition(" ")[2]}:
        if len(value) >= _SHORTEST:
            yield value
