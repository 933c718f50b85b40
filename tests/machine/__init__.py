"""What is of the machine."""
