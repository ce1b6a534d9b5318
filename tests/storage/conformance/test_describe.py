"""Conformance: the version and the size of the database."""

from taproof.storage.protocol import Storage


async def test_describe_names_the_database(storage: Storage) -> None:
    """The version begins with a number, the schema is current, and the size is that of the file or the database."""
    facts = await storage.describe()
    assert facts.program in type(storage).__module__.replace("postgres", "postgresql")
    assert int(facts.version.split(".")[0]) >= 3
    assert facts.schema_version == 1
    assert facts.size > 100_000
