"""Runs the command line: `taproof`, or `python -m taproof`."""

import io
import sys

from taproof.cli import commands


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not cost a token that is shown only once.
            stream.reconfigure(errors="backslashreplace")
    commands(prog_name="taproof")


if __name__ == "__main__":
    main()
