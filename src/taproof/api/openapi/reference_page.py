"""Render the API reference at /docs from the OpenAPI document: one page without scripts or external files."""

import json
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from taproof.contract.delivery import ATTEMPTS_SHOWN, SENTENCES
from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.errors import API_ERRORS
from taproof.core.retry_schedule import RETRY_DELAYS
from taproof.http.fixed_answer import FixedAnswer

STYLESHEET_PATH: Final = "/docs/docs.css"
_HEADERS: Final = (
    (b"cache-control", b"no-cache"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
)
_PLACEHOLDERS: Final = {"accessToken": "$ACCESS_TOKEN", "secretKey": "$TAPROOF_SECRET_KEY"}
_VARIABLES: Final = {"project_id": "TAPROOF_PROJECT_ID"}
"""The shell variables of path parameters whose name in the documentation differs from the parameter name."""
_SAMPLES: Final[dict[Any, Any]] = {
    "date-time": "2026-11-20T22:44:03.127Z",
    "integer": 0,
    "number": 0,
    "boolean": True,
    "string": "…",
}
_LISTED_VALUES: Final = 6
"""The longest enumeration that a table lists in full. Longer ones are explained elsewhere on the page."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a request or response body."""

    name: str
    type: str
    required: bool
    description: str
    default: str
    """As JSON; empty if there is no default."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The description, the fields and an example of a JSON object."""

    description: str
    fields: list[Field]
    example: str


@dataclass(frozen=True, slots=True)
class DocumentedRoute:
    """One operation in the OpenAPI document."""

    anchor: str
    method: str
    path: str
    description: str
    credential: str
    parameters: list[Field]
    body: Shape | None
    answers: list[Shape]
    failures: list[tuple[str, str]]
    curl: str


def stylesheet() -> FixedAnswer:
    """Return the application that serves the page's stylesheet."""
    css = files("taproof.api.openapi").joinpath("reference_page.css").read_bytes()
    return FixedAnswer(css, "text/css; charset=utf-8", _HEADERS)


def docs_page(document: Json) -> FixedAnswer:
    """Render an OpenAPI document as a page and return the application that serves it."""
    environment = Environment(
        loader=PackageLoader("taproof.api.openapi", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = _prose
    reader = Reader(document)
    endpoints: dict[str, list[DocumentedRoute]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            endpoints[operation["tags"][0]].append(reader.endpoint(method.upper(), path, operation))
    html = environment.get_template("reference_page.html").render(
        info=document["info"],
        stylesheet=STYLESHEET_PATH,
        groups=[(tag, endpoints[tag["name"]]) for tag in document["tags"]],
        errors=sorted((error.status, error.code, error.sentence) for error in API_ERRORS),
        events=[(name, reader.event(webhook["post"])) for name, webhook in document["webhooks"].items()],
        event_headers=reader.headers(document["webhooks"]["auth.confirmed"]["post"]),
        attempt_errors=SENTENCES,
        attempts_shown=ATTEMPTS_SHOWN,
        retry_delays=[_span(delay) for delay in RETRY_DELAYS],
    )
    return FixedAnswer(html.encode(), "text/html; charset=utf-8", _HEADERS)


class Reader:
    """Extracts the content of the page from the OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def endpoint(self, method: str, path: str, operation: Json) -> DocumentedRoute:
        """Return an operation in the form used by the page and by the reference in `docs/`."""
        schemes = [name for each in operation["security"] for name in each]
        body = None
        if "requestBody" in operation:
            body = self._shape(operation["requestBody"]["content"]["application/json"]["schema"])
        answers: list[Shape] = []
        failures: list[tuple[str, str]] = []
        for status, found in operation["responses"].items():
            response = self._resolve(found)
            if status == "200":
                schema = response["content"].get("application/json", {"schema": {}})["schema"]
                answers = [self._shape(each) for each in self._resolve(schema).get("oneOf", [schema])]
            else:
                failures.append((status, response["description"]))
        return DocumentedRoute(
            anchor=operation["operationId"],
            method=method,
            path=path,
            description=operation["description"],
            credential={"accessToken": "access token", "secretKey": "secret key"}[schemes[0]] if schemes else "none",
            parameters=[self._parameter(each) for each in operation.get("parameters", [])],
            body=body,
            answers=answers,
            failures=failures,
            curl=_curl(method, path, schemes, body),
        )

    def event(self, operation: Json) -> Shape:
        """Return an event's body, given the operation that a receiver implements."""
        return self._shape(operation["requestBody"]["content"]["application/json"]["schema"])

    def headers(self, operation: Json) -> list[Field]:
        """Return the headers sent with an event, given the operation that a receiver implements."""
        return [replace(self._parameter(each), type=each["schema"]["type"]) for each in operation["parameters"]]

    def _resolve(self, node: Json) -> Json:
        while "$ref" in node:
            target: Any = self._document
            for key in node["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            node = target
        return node

    def _parameter(self, parameter: Json) -> Field:
        schema = parameter["schema"]
        kind = f"{self._type(schema)}, in the {parameter['in']}"
        return Field(parameter["name"], kind, parameter["required"], parameter.get("description", ""), _default(schema))

    def _shape(self, schema: Json) -> Shape:
        schema = self._resolve(schema)
        required = schema.get("required", [])
        fields = []
        for name, each in schema.get("properties", {}).items():
            description = self._resolve(each).get("description", "")
            fields.append(Field(name, self._type(each), name in required, description, _default(each)))
            inner = self._resolve(each.get("items", each))
            inner = self._resolve(inner.get("anyOf", [inner])[0])
            if "properties" in inner:
                prefix = f"{name}[]." if "items" in each else f"{name}."
                fields += [replace(field, name=prefix + field.name) for field in self._shape(inner).fields]
        example = json.dumps(self._example(schema), indent=2, ensure_ascii=False) if fields else ""
        return Shape(schema.get("description", ""), fields, example)

    def _type(self, schema: Json) -> str:
        schema = self._resolve(schema)
        if "const" in schema:
            return json.dumps(schema["const"])
        if len(schema.get("enum", [])) > _LISTED_VALUES:
            return str(schema["type"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        if "anyOf" in schema:
            return " or ".join(self._type(each) for each in schema["anyOf"])
        if schema.get("type") == "array":
            return f"list of {self._type(schema['items'])}"
        kind = schema.get("type", "")
        if isinstance(kind, list):
            return " or ".join(kind)
        if "maximum" in schema:
            return f"{kind}, {schema['minimum']:.0f}–{schema['maximum']:.0f}"
        return {"date-time": "time", "date": "date"}.get(schema.get("format", ""), str(kind))

    def _example(self, schema: Json) -> Any:
        schema = self._resolve(schema)
        for key in ("const", "examples", "default", "enum"):
            if key in schema:
                return schema[key] if key in {"const", "default"} else schema[key][0]
        if "anyOf" in schema:
            return self._example(schema["anyOf"][0])
        if schema.get("type") == "object":
            return {name: self._example(each) for name, each in schema["properties"].items()}
        if schema.get("type") == "array":
            return [self._example(schema["items"])]
        return _SAMPLES.get(schema.get("format"), _SAMPLES[schema["type"]])


def _curl(method: str, path: str, schemes: list[str], body: Shape | None) -> str:
    path = re.sub(r"\{(\w+)\}", lambda name: f"${_VARIABLES.get(name[1], name[1].upper())}", path)
    lines = [f'curl "$TAPROOF_BASE_URL{path}"' if method == "GET" else f'curl -X {method} "$TAPROOF_BASE_URL{path}"']
    if schemes:
        lines.append(f'-H "Authorization: Bearer {_PLACEHOLDERS[schemes[0]]}"')
    if body is not None:
        lines.append('-H "Content-Type: application/json"')
        lines.append(f"-d '{body.example}'")
    return " \\\n  ".join(lines)


def _span(milliseconds: int) -> str:
    unit, name = next(each for each in ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s")) if milliseconds % each[0] == 0)
    return f"{milliseconds // unit} {name}"


def _default(schema: Json) -> str:
    return json.dumps(schema["default"]) if "default" in schema else ""


def _prose(text: str) -> Markup:
    """Convert the markup in the document's descriptions to HTML: paragraphs, numbered lists, and code in backticks."""
    blocks = []
    for block in text.strip().split("\n\n"):
        html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(block)))
        if re.match(r"\d+\. ", html):
            items = re.split(r"(?:^|\n)\d+\. ", html)[1:]
            blocks.append(f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>")
        else:
            blocks.append(f"<p>{html}</p>")
    return Markup("\n".join(blocks))  # noqa: S704 — everything except the tags above is escaped.
