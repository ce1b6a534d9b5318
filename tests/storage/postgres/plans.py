"""Query plans of PostgreSQL: the number of rows that a statement reads from each table."""

import json
from typing import Any

import asyncpg


async def explain(
    connection: asyncpg.Connection, statement: str, *values: Any, of: tuple[str, ...] = ("",), before: str = ""
) -> tuple[float, str]:
    """Run a statement after `before`, undo both, and return how many rows of the tables `of` it read, and its plan."""
    transaction = connection.transaction()
    await transaction.start()
    if before:
        await connection.execute(before)
    (explained,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *values)
    await transaction.rollback()
    return _rows_read(json.loads(explained[0])[0]["Plan"], of), explained[0]


def _rows_read(plan: dict[str, Any], of: tuple[str, ...]) -> float:
    read = sum(_rows_read(each, of) for each in plan.get("Plans", ()))
    if plan["Node Type"].endswith("Scan") and plan.get("Relation Name", "").startswith(of):
        read += (plan.get("Actual Rows", 0) + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return read
