"""Run all checks, each after those that it depends on."""

from collections.abc import Mapping

from taproof.cli.doctor.address import check_address, check_certificate, check_port
from taproof.cli.doctor.bot_api import check_messenger
from taproof.cli.doctor.finding import Finding, from_sentences, ok
from taproof.cli.doctor.geoip import check_geoip
from taproof.config.database_url import is_postgres
from taproof.config.settings import Settings, unknown_variables
from taproof.core.clock import Clock


async def examine(settings: Settings, environment: Mapping[str, str], clock: Clock) -> list[Finding]:
    """Return the findings of all checks, with the settings that `serve` would use."""
    unknown = [from_sentences("settings", "warning", sentence) for sentence in unknown_variables(environment)]
    return [
        *(unknown or [ok("settings", "all are valid")]),
        *await _check_store(settings, clock),
        *await check_messenger(settings, environment, clock),
        check_address(settings),
        *check_certificate(settings, clock()),
        *check_geoip(settings, clock()),
        await check_port(settings),
    ]


async def _check_store(settings: Settings, clock: Clock) -> list[Finding]:
    # Only the driver of the configured store is imported.
    if is_postgres(settings.database_url):
        from taproof.cli.doctor.postgres import check_postgres_store  # noqa: PLC0415

        return await check_postgres_store(settings, clock)
    from taproof.cli.doctor.sqlite import check_sqlite_store  # noqa: PLC0415

    return await check_sqlite_store(settings)
