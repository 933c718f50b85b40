"""Python functions as tools: what models see of them, and how they are called."""
