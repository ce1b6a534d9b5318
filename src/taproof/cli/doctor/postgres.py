"""The doctor's look at the PostgreSQL server and the database in it."""

from typing import Final

from taproof.cli.doctor.finding import Finding, from_sentences
from taproof.cli.doctor.master_key import check_master_key
from taproof.cli.doctor.project_bots import check_project_bots
from taproof.config.database_url import shown_database
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.runtime.database_probe import DatabaseServer, ask_server
from taproof.storage.migrate import migrations
from taproof.storage.postgres.pool import MAKE_OWNER, may_make_tables

_OLDEST: Final = 14
_SKEW_WARNING: Final = 1 * SECOND
_SKEW_PROBLEM: Final = 2 * SECOND
"""Half of this for each of two nodes is what leases and expiry allow for (jobs/leader.py)."""


async def check_postgres_store(settings: Settings, clock: Clock) -> list[Finding]:
    """Look at everything that a service on PostgreSQL depends on."""
    try:
        found = await ask_server(settings.database_url, clock)
    except StoreUnavailable as error:
        return [from_sentences("store", "problem", error.sentence)]
    store = _check_database(settings, found)
    if store.status != "problem":
        store = await _check_rights(settings) or store
    # The key is only looked at in a database of this release: that needs the schema.
    in_use = store.status == "ok" and bool(found.schema_version)
    return [
        _check_version(found),
        store,
        _check_pooler(settings, found),
        _check_clock(found),
        await check_master_key(settings, in_use=in_use),
        *(await check_project_bots(settings) if in_use else []),
    ]


def _check_version(found: DatabaseServer) -> Finding:
    name = f"PostgreSQL {found.version}"
    if found.version_number // 10_000 < _OLDEST:
        return Finding("postgresql", "problem", f"{name} is too old", f"Use {_OLDEST} or newer.")
    return Finding("postgresql", "ok", name)


def _check_database(settings: Settings, found: DatabaseServer) -> Finding:
    where = shown_database(settings.database_url)
    if found.is_read_only:
        advice = f"Name the primary server in {called('database_url')}."
        return Finding("store", "problem", f"{where} is read-only: a standby, or set so", advice)
    if found.encoding != "UTF8":
        advice = "Make a database with: createdb --owner=USER --template=template0 --encoding=UTF8 NAME"
        return Finding(
            "store", "problem", f"{where} has the encoding {found.encoding}, which not every name fits", advice
        )
    if found.schema_version is None:
        advice = f"Name one of its own with {called('database_url')}."
        return Finding("store", "problem", f"{where} holds another program's tables", advice)
    latest = migrations("postgres")[-1].version
    if found.schema_version == 0:
        return Finding("store", "ok", f"{where} is empty; its tables will be made at the first start")
    if found.schema_version < latest:
        detail = f"{where} has schema version {found.schema_version}, and this release has {latest}"
        return Finding("store", "warning", detail, "Run: taproof migrate (taproof serve does it by itself).")
    return Finding("store", "ok", f"{where} can be reached, schema version {found.schema_version}")


async def _check_rights(settings: Settings) -> Finding | None:
    # Not for the first start only: each day gets a partition of its own.
    try:
        if await may_make_tables(settings.database_url):
            return None
    except StoreUnavailable as error:
        return from_sentences("store", "problem", error.sentence)
    where = shown_database(settings.database_url)
    return Finding("store", "problem", f"this user may not make tables in {where}", MAKE_OWNER)


def _check_pooler(settings: Settings, found: DatabaseServer) -> Finding:
    if found.is_pooled and not settings.pgbouncer:
        return Finding(
            "pgbouncer",
            "problem",
            "a pooler answers in place of the server",
            f"Set {called('pgbouncer')}, or connect past it.",
        )
    if settings.pgbouncer and not found.is_pooled:
        return Finding(
            "pgbouncer",
            "warning",
            "the server answers itself, with no pooler in between",
            f"Leave out {called('pgbouncer')}: without it statements are prepared once.",
        )
    return Finding("pgbouncer", "ok", "in between, as set" if found.is_pooled else "none in between, as set")


def _check_clock(found: DatabaseServer) -> Finding:
    seconds = abs(found.skew) / SECOND
    if abs(found.skew) <= _SKEW_WARNING:
        return Finding("database clock", "ok", f"within {max(0.1, seconds):.1f} s of this machine's")
    side = "ahead of" if found.skew > 0 else "behind"
    return Finding(
        "database clock",
        "problem" if abs(found.skew) > _SKEW_PROBLEM else "warning",
        f"this machine is {seconds:.1f} s {side} the database server",
        "Turn time synchronisation on for both: timedatectl set-ntp true. Nodes must agree within a second.",
    )
