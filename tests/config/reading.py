"""The configs that the tests of reading them share."""

from __future__ import annotations

import pytest

from middleware import config
from middleware.config import ConfigError

KEY = "sk-secret-of-ours-0123456789"
ONE = '[models.one]\nupstream = "up"\n[upstreams.up]\nkind = "ollama"\n'


def mistakes(text: str, **environment: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        config.parse(text, environment=environment)
    return {one.key: one.text for one in caught.value.mistakes}
