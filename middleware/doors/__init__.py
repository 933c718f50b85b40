"""The protocols we are called in. Outside of here code binds `Door`, and no door's own names.

What is OpenAI's by nature stands here too. `FIELDS`: inside a request keeps OpenAI's shape,
whichever door it came through, and a config's `defaults`, `override` and `drop` are about that.
`FALLBACK` answers what is no HTTP, and so came through no door.
"""

from middleware.doors.chat import CHAT_DOOR, remembering_chat
from middleware.doors.chat.shapes import FIELDS
from middleware.doors.door import Door, Doors
from middleware.doors.messages import MESSAGES_DOOR, remembering_messages
from middleware.doors.ollama import GENERATE_DOOR, OLLAMA_DOOR, remembering_ollama
from middleware.doors.responses import RESPONSES_DOOR, remembering_responses
from middleware.doors.seen import Seen

FALLBACK: Door = CHAT_DOOR
DOORS = Doors(
    (CHAT_DOOR, MESSAGES_DOOR, OLLAMA_DOOR, GENERATE_DOOR), FALLBACK, keeping=(RESPONSES_DOOR,)
)


def remembering_doors() -> Doors:
    """Those of one server: the same, but what was said there is not read again."""
    seen = Seen()
    doors = (remembering_chat(seen), remembering_messages(seen), remembering_ollama(seen))
    return Doors((*doors, GENERATE_DOOR), FALLBACK, keeping=(remembering_responses(seen),))


__all__ = ("CHAT_DOOR", "DOORS", "FALLBACK", "FIELDS", "Door", "Doors", "remembering_doors")
