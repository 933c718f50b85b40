"""A Redis for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.state.server import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()
