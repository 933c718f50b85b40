"""Tools that the gateway runs itself, offered to a model beside those of its client.

The model is asked; what it calls of these tools is run, side by side, and it is asked again with
the results, until it answers or calls a tool of the client. All rounds are one answer: their texts
in order, one `Opened`, one `Finish`, the usage of all. Each round is an ask of its own below
(retries, choices, one deadline), so that a tool runs once, whoever answers. What the client does
not see of it is remembered and put back in later requests (`hidden`).

Where a turn calls tools of both, ours are run first, the client gets its own calls, and its results
join ours in the next request, in the order of the model's calls.
"""

from middleware.wrappers.server_tools.adapter import ServerTools
from middleware.wrappers.server_tools.menu import ServerToolSettings

__all__ = ("ServerToolSettings", "ServerTools")
