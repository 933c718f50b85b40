"""The command line's first lines: whatever interrupts it, nobody is shown a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED, NOBODY_READS = 130, 141
"""As a shell says it of programs that a signal ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        try:
            from middleware.cli.parser import run

            return run(arguments)
        finally:
            # What is only written at the end would fail there, where nobody catches it.
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("stopping\n")
        return INTERRUPTED
    except BrokenPipeError:  # `usetool last | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


if __name__ == "__main__":
    sys.exit(main())
