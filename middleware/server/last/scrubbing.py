"""Takes every secret out of what is shown; in its place stands where it comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from adapters.errors import KEY_SHAPE
from middleware.config import Config

SENSITIVE = re.compile(r"(^|-)(authorization|cookie|api-?key|token|secret|password)$")
# Clients put keys into bodies too, where some gateways look for them.
CREDENTIALS = (
    r"[\w-]*api[-_]?key|(?:proxy-)?authorization|password|passwd|(?:client_|app_)?secret"
    r"|(?:access|auth|bearer|refresh)_token"
)
_IN_BODY = re.compile(rf'("(?:{CREDENTIALS})"\s*:\s*)"(?:[^"\\]++|\\.)*+"', re.IGNORECASE)
_SHORTEST = 4
_BLOT = "[secret]"


class Scrubber:
    """Knows the secrets of a config by their variables."""

    def __init__(self, config: Config) -> None:
        named = {
            secret.value: f"${secret.variable or _variable(up.id)}"
            for up in config.upstreams.values()
            for secret in up.secrets()
        }
        keys = {key.value: f"${key.variable or 'USETOOL_KEY'}" for key in config.client_keys}
        self._known = {value: name for value, name in {**named, **keys}.items() if value}

    def text(self, text: str, more: Iterable[str] = ()) -> str:
        """A body, a frame or a message."""
        for secret in {*self._known, *more}:
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, _BLOT).replace(json.dumps(secret)[1:-1], _BLOT)
        return KEY_SHAPE.sub(_BLOT, _IN_BODY.sub(rf'\1"{_BLOT}"', text))

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers, with the variables a shell would put the secrets in from."""
        return {name: self._header(name, value) for name, value in headers.items()}

    def named(self, value: str) -> str:
        """A proxy's address, for instance."""
        return self._known.get(value) or value

    def _header(self, name: str, value: str) -> str:
        for secret, variable in self._known.items():
            if secret in value:
                return value.replace(secret, variable)
        if SENSITIVE.search(name.lower()):
            return "Bearer $CLIENT_KEY" if value.startswith("Bearer ") else "$CLIENT_KEY"
        return value


def _variable(upstream: str) -> str:
    return re.sub(r"\W", "_", upstream).upper() + "_KEY"
