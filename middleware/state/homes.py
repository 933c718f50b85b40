"""Where the gateway's own files are, and which `State` a config asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from middleware.config import Config, ConfigError, Mistake
from middleware.state.memory import MemoryState
from middleware.state.store import State

_FILE = "sqlite:///"


def open_state(config: Config, say: Callable[[str], None]) -> State:
    """Nothing is opened before it is first used; `say` is told once when it is lost, or back."""
    url = config.state.url or ""
    if is_shared(config):
        return _redis(config, url, say)
    if url == "memory:" or not (url or config.stamp):  # of no file there is none beside it
        return MemoryState()
    from middleware.state.file import FileState

    return FileState(file_of(url) if url else own_file(config, "state"), say)


def is_shared(config: Config) -> bool:
    """Whether several processes may ask it, each by itself."""
    return (config.state.url or "").startswith("redis")


def _redis(config: Config, url: str, say: Callable[[str], None]) -> State:
    from middleware.state.redis import RedisState

    try:
        return RedisState(url, say)
    except ModuleNotFoundError as error:
        text = f"needs the package '{error.name}', which is not installed."
    except ValueError as error:
        text = f"is no address of a Redis: {error}."
    raise ConfigError(config.source, (Mistake("state.url", text),))


def file_of(url: str) -> Path:
    """The file an address `sqlite:///PATH` names."""
    return Path(url.removeprefix(_FILE)).expanduser()


def own_file(config: Config, what: str) -> Path:
    """A file of this config alone: two gateways of one user share no limits and no rows."""
    source = os.path.abspath(config.source).encode(errors="surrogateescape")
    return state_folder(config) / f"{what}-{blake2b(source, digest_size=6).hexdigest()}.sqlite3"


def state_folder(config: Config) -> Path:
    """Where files of the gateway's own are."""
    if config.state.folder:
        return Path(config.state.folder).expanduser()
    return default_folder()


def default_folder() -> Path:
    """Where programs keep what should outlive a restart."""
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(state or "~/.local/state").expanduser() / "usetool"
