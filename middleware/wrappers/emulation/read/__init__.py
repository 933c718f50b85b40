"""A model's text, in any cuts, as text, thoughts and calls."""
