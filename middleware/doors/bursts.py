"""Events that come together and are many: what is alike of them is written at once."""

from __future__ import annotations

from operator import attrgetter

BURST = 24
"""So many events are worth a look at which are alike: a fast upstream, or a replay."""
delta_text, delta_arguments = attrgetter("text"), attrgetter("arguments")
