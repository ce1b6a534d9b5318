"""The parts of the OpenID provider that differ on PostgreSQL."""
