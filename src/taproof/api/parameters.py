"""Read the caller, the body and the parameters of a request to the developer API."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, cast

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ValidationError, WithJsonSchema

from taproof.api.models import DATE_TIME, described_as
from taproof.contract.access_token import ACCESS_TOKEN_ID
from taproof.contract.delivery import EVENT_ID
from taproof.contract.project import PROJECT_ID
from taproof.contract.session import SESSION_ID
from taproof.core.accounts import Actor, Developer
from taproof.core.errors import InvalidRequest
from taproof.http.body import read_json_object
from taproof.http.errors import failure_response
from taproof.http.instants import read_instant
from taproof.http.validation import validation_sentence
from taproof.service.analytics import Window

PAGE_LIMIT: Final = 200
"""The maximum number of sessions, deliveries or audit log entries on a page."""


async def _actor(request: Request) -> Actor:
    return cast("Actor", request.state.actor)


async def _caller(request: Request) -> Developer:
    actor = await _actor(request)
    actor.grant.require("read")
    return actor.developer


@dataclass(frozen=True)
class JsonBody:
    """A dependency that returns the fields of the body that were sent, and the defaults of the others.

    FastAPI itself would read the body before authentication.
    """

    model: type[BaseModel]
    may_be_empty: bool

    async def __call__(self, request: Request) -> dict[str, Any]:
        """Read the body of a request."""
        document = await read_json_object(request.scope, request.receive, may_be_empty=self.may_be_empty)
        # Authenticate again: the token can have been revoked while the body was being received.
        await request.state.authenticate()
        try:
            fields = self.model.model_validate(document).model_dump()
        except ValidationError as error:
            raise InvalidRequest(validation_sentence(error.errors(include_url=False))) from None
        return {name: value for name, value in fields.items() if value is not None}


def json_body(model: type[BaseModel], *, may_be_empty: bool = False) -> Any:
    """Mark the parameter of an endpoint that receives the body; `add` in `developer.py` documents it."""
    return Depends(JsonBody(model, may_be_empty))


def body_of(endpoint: Callable[..., Any]) -> JsonBody | None:
    """Return the body that an endpoint reads; None if it has no body."""
    parameter = inspect.signature(endpoint).parameters.get("body")
    return None if parameter is None else cast("JsonBody", parameter.annotation.__metadata__[0].dependency)


def answer_invalid_parameters(app: FastAPI) -> None:
    """Make an application return FastAPI's own failures in the usual error shape."""
    app.add_exception_handler(RequestValidationError, _on_invalid_parameters)


async def _on_invalid_parameters(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 — registered for this class only.
    return failure_response(InvalidRequest(validation_sentence(error.errors())))


def _page_size(value: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(PAGE_LIMIT)) else 0
    if not 1 <= number <= PAGE_LIMIT:
        raise InvalidRequest(f"limit must be a whole number from 1 to {PAGE_LIMIT}.")
    return number


def _window(value: str) -> int | str:
    return {"7": 7, "30": 30, "90": 90}.get(value, value)


ProjectId = Annotated[str, described_as(PROJECT_ID)]
SessionId = Annotated[str, described_as(SESSION_ID)]
DeliveryId = Annotated[str, described_as(EVENT_ID)]
AccessTokenId = Annotated[str, described_as(ACCESS_TOKEN_ID)]
_MESSENGER_ID: Final = WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,20}$"})
Caller = Annotated[Developer, Depends(_caller)]
"""The authenticated developer. The access token needs the scope `read`."""
Writer = Annotated[Actor, Depends(_actor)]
"""The authenticated developer and the credential used. The services check the scope that each change needs."""
Limit = Annotated[
    int,
    BeforeValidator(_page_size),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": PAGE_LIMIT, "default": 50}),
    Query(description="The maximum number of items on the page."),
]
Days = Annotated[
    Window,
    BeforeValidator(_window),
    WithJsonSchema({"type": "integer", "enum": [7, 30, 90], "default": 30}),
    Query(description="The number of UTC days, ending today."),
]
OneProject = Annotated[
    ProjectId | None,
    Query(description="Return only data of this project. Default: all of your projects."),
]
AuditedProject = Annotated[
    ProjectId | None,
    Query(description="Return the entries of all developers about this project. Default: your own entries."),
]
Since = Annotated[
    Annotated[int, BeforeValidator(partial(read_instant, field="since")), DATE_TIME] | None,
    Query(description="Return only sessions started at this time or later. In a URL, write + as %2B."),
]
Until = Annotated[
    Annotated[int, BeforeValidator(partial(read_instant, field="until")), DATE_TIME] | None,
    Query(description="Return only sessions started before this time."),
]
MessengerId = Annotated[
    Annotated[str, _MESSENGER_ID] | None,
    Query(description="Return only sessions that this messenger account confirmed."),
]
UserId = Annotated[
    str,
    _MESSENGER_ID,
    Path(description="The id of the user's messenger account.", examples=["123456789"]),
]
Cursor = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"})] | None,
    Query(description="The next_cursor of the previous page. Default: the first page."),
]
