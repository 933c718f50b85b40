"""Tools by prompt: any model calls tools, through the USE_TOOL language."""
