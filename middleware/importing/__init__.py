"""Other gateways' configs → our config.toml, and a list of what it cannot say."""

from middleware.importing.collecting import Lost, Unreadable
from middleware.importing.litellm import Imported, from_litellm, from_litellm_file
from middleware.importing.report import lost_lines

__all__ = ("Imported", "Lost", "Unreadable", "from_litellm", "from_litellm_file", "lost_lines")
