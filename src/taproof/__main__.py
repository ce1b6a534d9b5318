"""Runs the command line: `taproof`, or `python -m taproof`."""

import io
import sys

try:
    from taproof.cli.main import commands
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("taproof"):
        raise
    # The package alone is the SDK, and comes with the command all the same.
    sys.exit("This is Taproof's SDK only. The service and its command come with: pip install 'taproof[server]'")


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not cost a token that is shown only once.
            stream.reconfigure(errors="backslashreplace")
    commands(prog_name="taproof")


if __name__ == "__main__":
    main()
