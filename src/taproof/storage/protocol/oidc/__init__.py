"""The store's part for the OpenID provider."""
