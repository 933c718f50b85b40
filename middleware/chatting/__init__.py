"""A chat on the terminal with any model of a gateway: `usetool chat`."""

from middleware.chatting.conversation import Conversation
from middleware.chatting.endpoint import Endpoint, Failed, address, models
from middleware.chatting.gateway import running
from middleware.chatting.screen import Screen
from middleware.chatting.session import chat
from middleware.chatting.tools import Tool, example_tools

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
