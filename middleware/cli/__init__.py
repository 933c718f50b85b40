"""The commands of the command line, one module each: `add` says what it takes, `run` does it."""
