"""`Leaf`: an adapter that talks to an upstream, and all it may be asked beside a chat."""

from __future__ import annotations

from typing import Protocol

from adapters.errors import BadRequest
from adapters.protocol import Adapter, ChatRequest, Json
from adapters.shared.embeddings import EmbeddingRequest
from adapters.shared.model_list import Listed
from adapters.shared.traits import Traits


class Leaf(Adapter, Protocol):
    """The end of a nesting. What it does not write itself says that nothing is known."""

    __slots__ = ()

    @property
    def described(self) -> str:
        """Its name where people are shown the nesting."""
        return type(self).__name__

    async def models(self) -> Listed:
        """Return its models by the upstream's own names, or raise a `GatewayError`."""
        return {}

    def known(self, _model: str) -> Traits:
        """What it knows of a model, asking nobody: from its options, or by now."""
        return Traits()

    async def traits(self, model: str) -> Traits:
        """Say what a model can do; never fails: what cannot be learned is not known."""
        return self.known(model)

    async def calls_tools(self, _model: str) -> bool | None:
        """Whether a model has tools of its own; None: the upstream does not say."""
        return None

    def may_think(self, _request: ChatRequest) -> bool:
        """Whether the upstream may think about it, or want its thoughts of earlier turns back."""
        return True

    async def count_tokens(self, _request: ChatRequest) -> int | None:
        """How long a request is, by its upstream; None: that does not count, or did not say."""
        return None

    async def embed(self, _request: EmbeddingRequest) -> Json:
        """Return OpenAI's list of embeddings."""
        raise BadRequest(
            "The upstream of this model makes no embeddings. Ask a model of an upstream of kind "
            "compatible, ollama or longtail.",
            param="model",
            code="unsupported_value",
        )
