"""The last requests, kept in memory, so that nobody must guess what was sent."""

from middleware.server.last.access import Access, reader
from middleware.server.last.elsewhere import Elsewhere
from middleware.server.last.records import PATH, Record, Records
from middleware.server.last.reports import summaries, told
from middleware.server.last.scrubbing import Scrubber

__all__ = (
    "PATH",
    "Access",
    "Elsewhere",
    "Record",
    "Records",
    "Scrubber",
    "reader",
    "summaries",
    "told",
)
