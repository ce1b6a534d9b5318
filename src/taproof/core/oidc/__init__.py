"""The rules of the OpenID provider: pure, as everything in `core/`."""
