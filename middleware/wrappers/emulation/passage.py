"""An answer's way through its reader, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from adapters.errors import GatewayError
from adapters.protocol import Event, Events, TextDelta
from middleware.wrappers.emulation.text_answer import TextAnswer

_MOMENT = 1 << 14
"""Characters that are read while all others wait."""


async def read(batches: Events, answer: TextAnswer, ends: bool = False) -> Events:
    """What an answer lets leave, with `ends` to its end; long texts are read in pieces that take a
    moment each: others wait meanwhile.

    What fails from the first one on is not asked again, though nothing may have left yet.
    """
    begun = False
    try:
        async for batch in batches:
            begun = True
            for part in _parts(batch):
                if events := answer.take(part):
                    yield events
                if part is not batch:
                    await asyncio.sleep(0)
    except GatewayError as error:
        error.begun = error.begun or begun
        raise
    finally:
        await batches.aclose()
    if ends and (events := answer.end()):
        yield events


def _parts(batch: tuple[Event, ...]) -> Iterable[tuple[Event, ...]]:
    if not [one for one in batch if type(one) is TextDelta and len(one.text) > _MOMENT]:
        return (batch,)
    return ((part,) for event in batch for part in _cut(event))


def _cut(event: Event) -> Iterator[Event]:
    if not isinstance(event, TextDelta):
        yield event
        return
    for at in range(0, len(event.text), _MOMENT):
        yield TextDelta(event.text[at : at + _MOMENT])
