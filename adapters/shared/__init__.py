"""What the languages of upstreams have in common: history, tools, calls, fields, schemas."""
