"""The application that is recorded: asks all of a scene, as `usetool record` tells it where."""

from __future__ import annotations

import sys

from openai import OpenAI

from tests.replays.scenes import SCENES

if __name__ == "__main__":
    SCENES[sys.argv[1]]().ask(OpenAI(max_retries=0))
