"""The file of a cassette: YAML that people read and edit, from which every byte comes back."""

from middleware.cassettes.file.disk import (
    CassetteText,
    cassette_text,
    parse_cassette,
    read_cassette,
    write_cassette,
)
from middleware.cassettes.file.shape import turn_from_json, turn_to_json

__all__ = (
    "CassetteText",
    "cassette_text",
    "parse_cassette",
    "read_cassette",
    "turn_from_json",
    "turn_to_json",
    "write_cassette",
)
