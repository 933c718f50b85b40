"""A folder with a config, and the command line run in it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

CONFIG = """
[server]
port = PORT
[upstreams.open]
kind = "compatible"
base_url = "http://127.0.0.1:1/v1"
[upstreams.locked]
kind = "compatible"
base_url = "http://127.0.0.1:2/v1"
api_key = "env:LOCKED_KEY"
[models.plain]
upstream = "open"
name = "plain-1"
drop = ["user"]
[models."locked-*"]
upstream = "locked"
name = "*"
"""
REQUEST = """{"messages": [{"role": "user", "content": "你好"}], "user": "u", "model": "plain"}"""


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "middleware", *arguments],
        cwd=ROOT, input=stdin, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
