"""Server tools: what the gateway runs itself for a model, and how functions become tools."""
