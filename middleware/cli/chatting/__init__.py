"""A chat on the terminal with any model of a gateway: `usetool chat`."""

from middleware.cli.chatting.conversation import Conversation
from middleware.cli.chatting.endpoint import Endpoint, Failed, address, models
from middleware.cli.chatting.gateway import running
from middleware.cli.chatting.screen import Screen
from middleware.cli.chatting.session import chat
from middleware.cli.chatting.tools import Tool, example_tools

__all__ = (
    "Conversation",
    "Endpoint",
    "Failed",
    "Screen",
    "Tool",
    "address",
    "chat",
    "example_tools",
    "models",
    "running",
)
