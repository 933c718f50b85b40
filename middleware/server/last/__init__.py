"""The last requests, kept in memory, so that nobody must guess what was sent."""

from middleware.server.last.access import Access, reader
from middleware.server.last.records import PATH, Record, Records
from middleware.server.last.reports import summary, told
from middleware.server.last.scrubbing import Scrubber

__all__ = ("PATH", "Access", "Record", "Records", "Scrubber", "reader", "summary", "told")
