"""The secret that signs what clients carry: the config's, or one of this machine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from middleware.config import Config
from middleware.state.homes import state_folder


def signing_secret(config: Config, say: Callable[[str], None]) -> bytes:
    """A config of no file has one for this process alone, and so has a machine that keeps none."""
    given = config.state.secret
    if given is not None and given.value:
        return sha256(given.value.encode()).digest()
    if not config.stamp:
        return secrets.token_bytes(32)
    path = state_folder(config) / "secret"
    try:
        return _kept(path)
    except OSError as error:
        say(
            f"'{path}' cannot be kept ({error.strerror}): what clients carry is signed anew after "
            "each start. Set `[state] secret`, or a `folder` that can be written."
        )
        return secrets.token_bytes(32)


def _kept(path: Path) -> bytes:
    """Two processes that begin at once have the same: a linked file is whole from the first."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, secrets.token_bytes(32))
    finally:
        os.close(handle)
    try:
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()
