"""The command line: `taproof`, or `python -m taproof`."""

import gc
import io
import os
import sys

gc.disable()  # The collector would look for garbage among the objects of each import, and find nearly none.
try:
    from taproof.cli.completion import COMPLETE_VARIABLE
    from taproof.cli.main import commands
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("taproof"):
        raise
    # The package without extras is only the SDK, but pip installs the `taproof` command with it too.
    sys.exit("This is Taproof's SDK only. To install the service and its command: pip install 'taproof[server]'")


def main() -> None:
    """Run the command named by the arguments, and exit with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Printing a token that is shown only once must not fail because the terminal cannot show a character.
            stream.reconfigure(errors="backslashreplace")
    gc.enable()
    if COMPLETE_VARIABLE in os.environ:
        import typer.completion  # noqa: PLC0415 — only a shell that completes needs it.

        typer.completion.completion_init()  # type: ignore[attr-defined]  # Typer does not list it, but `Typer()` calls it.
    commands(prog_name="taproof")


if __name__ == "__main__":
    main()
