"""Secrets: found by name and by shape, and replaced by marks before anything is written."""

from middleware.cassettes.secrets.blotter import Blotter, Redaction, TurnBlotter
from middleware.cassettes.secrets.needles import leaks
from middleware.cassettes.secrets.redact import blotted, redacted

__all__ = ("Blotter", "Redaction", "TurnBlotter", "blotted", "leaks", "redacted")
