"""What was made of a conversation, kept for its next turn.

A conversation comes whole with every turn, and all but its end was there the turn before. The door
gives a message that it has seen as the same object again, and nobody changes one in place. So what
was worked out of a beginning is found again by which objects it is, without a look at what they
say; and as doors share objects between requests of one owner alone, so does this.

What reads a conversation is a `Writer`: it takes message after message, and what it makes of one
depends on those before it alone. A memory has such writers as they stood behind the last message
they took; a longer conversation goes on from a copy of the longest that fits (`writer_of`). The
result is the same with the memory empty, full or off.
"""

from adapters.shared.beginnings.memory import Beginnings, Writer, writer_of
from adapters.shared.beginnings.pieces import JsonArray, array, frozen

__all__ = ("Beginnings", "JsonArray", "Writer", "array", "frozen", "writer_of")
