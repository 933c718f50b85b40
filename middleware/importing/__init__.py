"""Other gateways' configs → our config.toml, and a list of what it cannot say."""

from middleware.importing.collecting import Lost, Unreadable
from middleware.importing.litellm import Imported, from_litellm
from middleware.importing.report import lost_lines

__all__ = ("Imported", "Lost", "Unreadable", "from_litellm", "lost_lines")
