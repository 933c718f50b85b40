"""Tables of kind `mcp`: the tools of MCP servers, over stdio or streamable HTTP."""
