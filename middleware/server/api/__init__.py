"""What FastAPI serves beside the hot doors, and the pages that describe all of it."""

from middleware.server.api.app import build_api

__all__ = ("build_api",)
