"""JSON Schema for languages that speak only a part of it: inlining, subsets, and what was lost."""
