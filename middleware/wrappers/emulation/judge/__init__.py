"""Whether a call is one: its name, its arguments, its schema."""
