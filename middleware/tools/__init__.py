"""Server tools: what the gateway runs itself for a model, and how functions become tools."""

from middleware.tools.registry import Registry, Result, ToolError, schema_of
from middleware.tools.tool_marks import tool

__all__ = ("Registry", "Result", "ToolError", "schema_of", "tool")
