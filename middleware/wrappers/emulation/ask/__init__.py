"""What is asked of a model without tools: the prompt, the form it is held to."""
