"""Sign-ins through Taproof's OpenID provider and through oidc-provider, by the server's CPU time."""

import asyncio
from typing import Final

from benchmarks.measuring import median_ratio
from benchmarks.openid_provider.measuring import figure_rows, measure_providers, profile
from benchmarks.openid_provider.oidc_provider import DURABLE, MEMORY, oidc_provider
from benchmarks.openid_provider.taproof import taproof
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.peers.catalog import versions

_FLOWS: Final = 500
"""Sign-ins for each second that the plan gives a figure."""
_CONNECTIONS: Final = 32


def measure_openid(plan: Plan) -> PartOutcome:
    """Measure all three in the same rounds."""
    starts = {
        "taproof": taproof(plan.sessions),
        "durable": oidc_provider(DURABLE),
        "memory": oidc_provider(MEMORY),
    }
    directory = plan.directory / "openid"
    directory.mkdir()
    figures = asyncio.run(
        measure_providers(
            list(starts.values()),
            directory,
            flows=_FLOWS * plan.seconds,
            repeat=plan.repeat,
            connections=_CONNECTIONS,
        )
    )
    note = (
        "Code flow with PKCE, an application with a secret, RS256: authorize, sign-in page, the user's confirmation, "
        f"redirect, token, userinfo; {_CONNECTIONS} at the same time. Every ID token is verified. `server ms` is the "
        "server's CPU time for a whole sign-in. `× the first` is the median of its ratios to Taproof's in the same "
        "rounds."
    )
    outcome = PartOutcome(tables=[Table("OpenID Connect sign-ins", figure_rows(figures), note)])
    for name, figure in zip(starts, figures, strict=True):
        outcome.values[f"openid.{name}.ratio"] = median_ratio(figure.rounds, figures[0].rounds, "cost")
    parts, _ = asyncio.run(profile(plan.sessions, directory, flows=_FLOWS * plan.seconds, connections=_CONNECTIONS))
    outcome.tables.append(parts)
    outcome.versions |= versions(DURABLE)
    return outcome
