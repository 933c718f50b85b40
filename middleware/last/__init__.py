"""The last requests, kept in memory, so that nobody must guess what was sent."""

from middleware.last.access import reader
from middleware.last.records import PATH, Record, Records
from middleware.last.scrubbing import Scrubber
from middleware.last.telling import summary, told

__all__ = ("PATH", "Record", "Records", "Scrubber", "reader", "summary", "told")
