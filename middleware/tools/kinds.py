"""Which table a `kind` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from middleware.config import ToolConfig
from middleware.tools.http import HttpTable
from middleware.tools.mcp.table import McpTable
from middleware.tools.python.table import PythonTable
from middleware.tools.table import TableContext, ToolTable
from middleware.tools.tavily import TavilyTable

_TABLES: Mapping[str, Callable[[ToolConfig, TableContext], ToolTable]] = {
    "python": PythonTable,
    "http": HttpTable,
    "tavily": TavilyTable,
    "mcp": McpTable,
}


def table_of(config: ToolConfig, around: TableContext) -> ToolTable:
    return _TABLES[config.kind](config, around)
