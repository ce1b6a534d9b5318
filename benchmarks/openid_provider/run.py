"""Measure only the sign-ins through OpenID providers; see README.md here.

Usage: python -m benchmarks.openid_provider.run [--flows N] [--repeat R] [--connections C] [--only NAME…], in the
project's root. Needs two cores.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.machine import BUILD, LOAD_CORE, SERVER_CORE, BenchmarkFailed, say
from benchmarks.openid_provider.measuring import figure_rows, measure_providers, profile
from benchmarks.openid_provider.oidc_provider import DURABLE, MEMORY, oidc_provider
from benchmarks.openid_provider.taproof import taproof
from benchmarks.peers.installing import install_npm
from benchmarks.report import markdown

_SESSIONS: Final = 10_000
PROVIDERS: Final = {
    "taproof": taproof(_SESSIONS),
    "elsewhere": taproof(_SESSIONS, confirms_elsewhere=True),
    "durable": oidc_provider(DURABLE),
    "memory": oidc_provider(MEMORY),
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure sign-ins through OpenID providers.")
    add = parser.add_argument
    add("--flows", type=int, default=1_000, help="sign-ins of one provider in one round (default: 1,000)")
    add("--repeat", type=int, default=3, help="rounds that count, of which the median is taken (default: 3)")
    add("--connections", type=int, default=32, help="sign-ins at the same time (default: 32)")
    add("--only", nargs="+", choices=list(PROVIDERS), metavar="NAME", help=f"some of: {', '.join(PROVIDERS)}")
    add("--profile", action="store_true", help="also print where Taproof's time goes")
    given = parser.parse_args()
    if min(given.flows, given.repeat, given.connections) < 1:
        parser.error("--flows, --repeat and --connections must be positive")
    return given


async def measure(given: argparse.Namespace, directory: Path) -> None:
    """Measure and print what the command line asks for."""
    starts = [PROVIDERS[name] for name in given.only or PROVIDERS]
    load = {"flows": given.flows, "connections": given.connections}
    figures = await measure_providers(starts, directory, repeat=given.repeat, **load)
    say("")
    print(markdown(figure_rows(figures)))
    for table in await profile(_SESSIONS, directory, **load) if given.profile else []:
        print(f"\n{table.title}\n\n{markdown(table.rows)}")


def main() -> None:
    """Install, measure, print."""
    given = arguments()
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise SystemExit("Two cores are needed, and this process may not use both.")
    BUILD.mkdir(parents=True, exist_ok=True)
    install_npm()
    os.sched_setaffinity(0, {LOAD_CORE})  # Each provider is pinned to its own core.
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="openid-") as directory:
        try:
            asyncio.run(measure(given, Path(directory)))
        except* BenchmarkFailed as failures:
            print(f"\n{failures.exceptions[0]}", file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
