"""Several processes on one port."""
