"""Notes of a conversation: files in its own folder, which the gateway gives."""

import re
from pathlib import Path
from typing import Annotated, Any

Title = Annotated[str, "A few words: letters, digits, blanks"]


def write_note(title: Title, text: str, _context: Any = None) -> str:
    """Keep a note, or replace the one of this title."""
    _file(title, _context).write_text(text, encoding="utf-8")
    return "kept"


def read_note(title: Title, _context: Any = None) -> str:
    """Read a note again."""
    file = _file(title, _context)
    if not file.exists():
        raise LookupError(f"there is no note '{title}'")
    return file.read_text(encoding="utf-8")


def list_notes(_context: Any = None) -> list[str]:
    """The titles of all notes."""
    return sorted(path.stem for path in Path(_context["workspace"]).glob("*.md"))


def _file(title: str, context: Any) -> Path:
    if not re.fullmatch(r"[\w -]{1,60}", title):
        raise ValueError("a title is letters, digits and blanks, up to 60")
    return Path(context["workspace"]) / f"{title}.md"
