"""Generate the pages of the HTTP API and of its errors from the OpenAPI document."""

import re
from collections.abc import Sequence
from typing import Any, Final

from scripts.docs_markdown import cell, table

from taproof.api.openapi.reference_page import DocumentedRoute, Field, Reader
from taproof.core.errors import API_ERRORS

API_INTRO: Final = """\
# API

This page is generated from the service's OpenAPI document. A running service serves the same document as a page with
curl examples (`/docs`), and as JSON for client generators (`/openapi.json`).
"""
ERRORS_INTRO: Final = """\
# Errors

The body of every error has exactly one field, `{"error": "…"}`: one sentence that a person can act on. Programs should
read the status and the header `X-Error-Code`, whose codes stay the same from release to release. The sentence may be
more specific than the one below, and may change. `cancelled`, `expired` and `used` are not errors: they are values of
`status` in a 200 response.

What to do, by status:

| status | do |
|---|---|
| 400, 401, 404, 405, 413, 415 | The same request fails again. Correct it, or the credential, as the sentence says. |
| 403 | The credential may not do this. Use one that may: `WWW-Authenticate` names the missing scope. |
| 429, 503 | Repeat the request after the number of seconds in `Retry-After`. |
| 500 | This is a bug in the service; its log shows where. It is safe to try again once. |

A request without an answer may or may not have been carried out, and so may one that a proxy answers with 502 or 504.
`verify` returns identity and proof once. If the session has a `code_challenge`, the holder of the verifier can read the
same answer again for 60 seconds.
"""

ERRORS_BELOW_HTTP: Final = """\

## Errors below HTTP

The server itself refuses some requests before Taproof's own code reads them. The answer then has only a status: no
body, no `X-Error-Code`, no CORS headers and no `Strict-Transport-Security`. The request has had no effect and is not
counted, and the connection is closed. No SDK or browser sends such a request, and a proxy answers most of them itself.

| request | answer |
| --- | --- |
| no valid request line, such as TLS on a port for plain HTTP | 400 |
| a version other than HTTP/1.0 and HTTP/1.1 | 400 |
| a malformed header | 400 |
| two different lengths, or an invalid one | 400 |
| a `Transfer-Encoding` that does not end in `chunked`, or any with HTTP/1.0 | 400 |
| a URL and headers of more than 16 KiB together | 431 |
| more than 100 headers | 431 |
| HTTP/2 | none |

With *none*, the connection is closed without an answer. The same happens if a connection is idle, or the headers of a
request take longer, than [`--keep-alive`](settings.md#network), and to plain HTTP on a port for TLS. 414 is never sent.
"""


def api_page(document: dict[str, Any]) -> str:
    """Return the page with every operation, field, answer and failure."""
    reader = Reader(document)
    groups: dict[str, list[tuple[str, DocumentedRoute]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            endpoint = reader.endpoint(method.upper(), path, operation)
            groups[operation["tags"][0]].append((operation["summary"], endpoint))
    parts = [API_INTRO, document["info"]["description"].strip(), ""]
    summary = [
        (f"[`{each.method} {each.path}`](#{_slug(title)})", cell(title))
        for endpoints in groups.values()
        for title, each in endpoints
    ]
    parts.append(table(("call", ""), summary))
    for tag in document["tags"]:
        parts += [f"## {tag['name']}", "", tag["description"], ""]
        parts += [_endpoint(*each) for each in groups[tag["name"]]]
    return "\n".join(parts)


def _slug(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _endpoint(title: str, endpoint: DocumentedRoute) -> str:
    parts = [
        f"### {title}",
        "",
        f"`{endpoint.method} {endpoint.path}`",
        "",
        endpoint.description.strip(),
        "",
        f"Authorization: {endpoint.credential}.",
        "",
    ]
    if endpoint.parameters:
        parts.append(_fields("parameter", endpoint.parameters))
    if endpoint.body is not None:
        parts += [_fields("body", endpoint.body.fields), _json(endpoint.body.example)]
    for answer in endpoint.answers:
        said = f": {answer.description}" if answer.description else ""
        parts += [f"**200**{said}", ""]
        if answer.fields:
            parts += [_fields("response", answer.fields, answer=True), _json(answer.example)]
    for status, text in endpoint.failures:
        parts += [f"- **{status}** {meaning}" for meaning in text.split("\n\n")]
    return "\n".join([*parts, ""])


def _json(example: str) -> str:
    return f"```json\n{example}\n```\n" if example else ""


def _fields(kind: str, fields: Sequence[Field], *, answer: bool = False) -> str:
    rows = []
    for field in fields:
        needed = (
            "" if answer or field.required else f"optional, default `{field.default}`" if field.default else "optional"
        )
        rows.append((f"`{field.name}`", cell(field.type), needed, cell(field.description)))
    if answer:
        return table((kind, "type", "meaning"), [(name, of, meaning) for name, of, _, meaning in rows])
    return table((kind, "type", "", "meaning"), rows)


def errors_page() -> str:
    """Return the page with every X-Error-Code: its status, when it comes, and what to do."""
    rows = sorted((error.status, error.code, error.meaning, error.sentence) for error in API_ERRORS)
    codes = table(
        ("status", "`X-Error-Code`", "when", "what the sentence says"),
        [(str(status), f"`{code}`", cell(when), cell(sentence)) for status, code, when, sentence in rows],
    )
    return f"{ERRORS_INTRO}\n{codes}{ERRORS_BELOW_HTTP}"
