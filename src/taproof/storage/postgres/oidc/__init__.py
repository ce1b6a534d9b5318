"""The OpenID provider on PostgreSQL."""
