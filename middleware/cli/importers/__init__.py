"""Other gateways' configs → our config.toml, and a list of what it cannot say."""

from middleware.cli.importers.collecting import Lost, Unreadable
from middleware.cli.importers.litellm import Imported, from_litellm, from_litellm_file
from middleware.cli.importers.report import lost_lines

__all__ = ("Imported", "Lost", "Unreadable", "from_litellm", "from_litellm_file", "lost_lines")
