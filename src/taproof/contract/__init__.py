"""Defines each public resource once: the fields of its answers, and its settings.

A resource is a frozen dataclass, which the SDK returns, and its settings are a `TypedDict`. Each field has its type and
a `Field`: its sentence, example, limits and default. The models of the API, the OpenAPI document, the options of the
command line, the check boxes of the console and the reference pages walk the fields with `fields.described`.

Statuses, events and actions in answers are plain strings, because a newer service may add more than the SDK knows.

The package imports only the standard library, because applications import it with the SDK.
"""
