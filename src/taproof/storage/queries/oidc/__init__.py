"""The statements of the OpenID provider."""
