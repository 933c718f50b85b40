"""Leaves: each module speaks one provider's language. Nothing here imports from `middleware`."""
