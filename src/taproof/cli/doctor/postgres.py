"""Check the PostgreSQL server and its database."""

from typing import Final

from taproof.cli.doctor.finding import Finding, from_sentences, ok, problem, warning
from taproof.cli.doctor.master_key import check_master_key
from taproof.config.database_url import shown_database
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.runtime.database_probe import DatabaseServer, ask_server
from taproof.storage.migrate import migrations
from taproof.storage.postgres.connection import find_pooler, may_make_tables
from taproof.storage.postgres.connection_errors import MAKE_OWNER

_OLDEST: Final = 14
_SKEW_WARNING: Final = 1 * SECOND
_SKEW_PROBLEM: Final = 2 * SECOND
"""Leases and expiry allow for half of this on each of two nodes (jobs/leader.py)."""


async def check_postgres_store(settings: Settings, clock: Clock) -> list[Finding]:
    """Check everything that a service on PostgreSQL depends on."""
    try:
        found = await ask_server(settings.database_url, clock)
    except StoreUnavailable as error:
        return [from_sentences("store", "problem", error.sentence)]
    version, store, *others = judge_server(settings, found)
    if store.status != "problem":
        store = await _check_rights(settings) or store
    # Checking the key against the database needs the schema of this release.
    in_use = store.status == "ok" and bool(found.schema_version)
    pooler = await _check_pooler(settings)
    return [version, store, pooler, *others, await check_master_key(settings, in_use=in_use)]


def judge_server(settings: Settings, found: DatabaseServer) -> list[Finding]:
    """Return the findings about a server's version, database, clock and durability, in this order."""
    version = ok("postgresql", f"PostgreSQL {found.version}")
    if found.version_number // 10_000 < _OLDEST:
        version = problem("postgresql", f"PostgreSQL {found.version} is too old", f"Use {_OLDEST} or newer.")
    return [version, _check_database(settings, found), _check_clock(found), _check_durability(found)]


def _check_database(settings: Settings, found: DatabaseServer) -> Finding:
    where = shown_database(settings.database_url)
    if found.is_read_only:
        advice = f"Set {called('database_url')} to the primary server."
        return problem("store", f"{where} is read-only, because it is a standby or set to read-only", advice)
    if found.encoding != "UTF8":
        advice = "Create a database with: createdb --owner=USER --template=template0 --encoding=UTF8 NAME"
        return problem("store", f"{where} has the encoding {found.encoding}, which cannot store every name", advice)
    if found.schema_version is None:
        advice = f"Set {called('database_url')} to another database."
        return problem("store", f"{where} contains the tables of another program", advice)
    latest = migrations("postgres")[-1].version
    if found.schema_version == 0:
        return ok("store", f"{where} is empty; its tables will be created at the first start")
    if found.schema_version < latest:
        detail = f"{where} has schema version {found.schema_version}, and this release has {latest}"
        return warning("store", detail, "Run: taproof migrate (taproof serve does it automatically).")
    return ok("store", f"{where} can be reached, schema version {found.schema_version}")


async def _check_rights(settings: Settings) -> Finding | None:
    # This right is needed at all times, because each day has its own partition.
    try:
        if await may_make_tables(settings.database_url):
            return None
    except StoreUnavailable as error:
        return from_sentences("store", "problem", error.sentence)
    where = shown_database(settings.database_url)
    return problem("store", f"this user may not create tables in {where}", MAKE_OWNER)


async def _check_pooler(settings: Settings) -> Finding:
    try:
        pooling = await find_pooler(settings.database_url)
    except StoreUnavailable as error:
        return from_sentences("pooler", "problem", error.sentence)
    if pooling == "transaction":
        detail = "transaction mode, so a call with wait is answered up to a second later if another node gets the tap"
        return ok("pooler", detail)
    if settings.pgbouncer:
        detail = "none in transaction mode answers, but the setting says so"
        return warning("pooler", detail, f"Leave out {called('pgbouncer')}: without it, statements are prepared once.")
    return ok("pooler", "session mode" if pooling == "session" else "none")


def _check_durability(found: DatabaseServer) -> Finding:
    """Name what a crash or a fail-over would lose (docs/explanation/durability.md)."""
    name = "durability"
    if found.synchronous_commit == "off" or (found.waits_for_standbys and found.synchronous_commit == "local"):
        lost = "a crash" if found.synchronous_commit == "off" else "a fail-over"
        detail = f"synchronous_commit is {found.synchronous_commit}, so {lost} loses sign-ins that were acknowledged"
        return warning(name, detail, "Set synchronous_commit = on for this database.")
    if found.waits_for_standbys and found.standbys == 0:
        detail = "no standby is connected, and synchronous_standby_names makes every write wait for one"
        advice = "Start a standby. Turn synchronous replication off only if every standby is lost for good."
        return problem(name, detail, advice)
    if found.standbys and not found.waits_for_standbys:
        detail = "the standbys are asynchronous, so a fail-over loses or takes back sign-ins that were acknowledged"
        advice = "Set synchronous_standby_names, or with Patroni synchronous_mode and synchronous_mode_strict."
        return warning(name, detail, advice)
    return ok(name, "writes wait for a standby" if found.standbys else "no standby; writes wait for the disk")


def _check_clock(found: DatabaseServer) -> Finding:
    seconds = abs(found.skew) / SECOND
    if abs(found.skew) <= _SKEW_WARNING:
        return ok("database clock", f"within {max(0.1, seconds):.1f} s of this machine's")
    side = "ahead of" if found.skew > 0 else "behind"
    return Finding(
        "database clock",
        "problem" if abs(found.skew) > _SKEW_PROBLEM else "warning",
        f"this machine is {seconds:.1f} s {side} the database server",
        "Turn on time synchronisation for both: timedatectl set-ntp true. Nodes must agree within a second.",
    )
