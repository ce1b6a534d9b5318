"""The OpenID provider on SQLite."""
