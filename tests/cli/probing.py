"""An upstream that is probed, and what is said of it."""

from __future__ import annotations

KEY = "sk-ant-canary-0123456789"
