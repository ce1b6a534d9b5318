"""The use cases of the OpenID provider."""
