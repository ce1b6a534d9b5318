"""The developer endpoints, `/api/v1/dev/*` (contract.md, Developer endpoints).

Each request is authenticated before anything else is read, so an unauthenticated caller gets only 401. An unknown path
is answered with 404 and a wrong method, HEAD included, with 405; both need no authentication. The API reference shows
the endpoints' docstrings as their descriptions.
"""

import asyncio
import dataclasses
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from pydantic import BaseModel
from starlette.routing import BaseRoute

from taproof.api import parameters
from taproof.api.clients import ClientEndpoints
from taproof.api.members import MemberEndpoints
from taproof.api.models import DeletedAnswer, answer_model, list_model, request_model
from taproof.api.parameters import (
    AccessTokenId,
    AuditedProject,
    Caller,
    Cursor,
    DeliveryId,
    Limit,
    OneProject,
    ProjectId,
    SessionId,
    Writer,
    answer_invalid_parameters,
    body_of,
    json_body,
)
from taproof.api.projects import ENCODE, WEBHOOKS_TAG, ProjectEndpoints
from taproof.api.users import UserEndpoints
from taproof.contract.access_token import AccessToken, CreatedAccessToken, NewAccessToken
from taproof.contract.account import Account, Usage
from taproof.contract.analytics import Analytics, AnalyticsDay, AnalyticsFunnel, ProjectName
from taproof.contract.audit import AuditEntry
from taproof.contract.delivery import Delivery, DeliveryAttempt, DeliveryState, EventType, WebhookTest
from taproof.contract.fields import described
from taproof.contract.session import Session, SignInStatus
from taproof.core.accounts import Actor, Developer
from taproof.core.errors import InvalidAccessToken
from taproof.http.errors import NO_PAGE, bearer_token, install_error_handlers
from taproof.http.instants import read_instant
from taproof.http.limits.developers import TellLimits
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import CountRequests, Metrics
from taproof.service import json_fields
from taproof.service.use_cases import UseCases

PREFIX: Final = "/api/v1/dev"
_WAYS_OUT: Final = frozenset({("GET", f"{PREFIX}/tokens"), ("DELETE", f"{PREFIX}/tokens/{{token_id}}")})
"""The calls needed to revoke a stolen token: see `http/limits/developers.py`."""

CreateAccessToken: Final = request_model(
    "CreateAccessToken", "A new access token.", described(NewAccessToken), required=["name"]
)
AccessTokenAnswer: Final = answer_model("AccessTokenAnswer", AccessToken)
AccessTokenListAnswer: Final = list_model(
    "AccessTokenListAnswer", "All of a developer's access tokens, newest first.", "tokens", AccessTokenAnswer
)
CreatedAccessTokenAnswer: Final = answer_model("CreatedAccessTokenAnswer", CreatedAccessToken)
OwnAccountAnswer: Final = answer_model("OwnAccountAnswer", Account, models={Usage: answer_model("UsageAnswer", Usage)})
AnalyticsAnswer: Final = answer_model(
    "AnalyticsAnswer",
    Analytics,
    models={
        AnalyticsDay: answer_model("DayAnswer", AnalyticsDay),
        AnalyticsFunnel: answer_model("FunnelAnswer", AnalyticsFunnel),
        ProjectName: answer_model("ProjectNameAnswer", ProjectName),
    },
)
AuditPageAnswer: Final = list_model(
    "AuditPageAnswer",
    "A page of the audit log, newest entry first.",
    "entries",
    answer_model("AuditEntryAnswer", AuditEntry),
    in_pages=True,
)
SendWebhookTest: Final = request_model("SendWebhookTest", "A webhook test.", described(WebhookTest))
DeliveryAnswer: Final = answer_model(
    "DeliveryAnswer", Delivery, models={DeliveryAttempt: answer_model("AttemptAnswer", DeliveryAttempt)}
)
DeliveryPageAnswer: Final = list_model(
    "DeliveryPageAnswer", "A page of deliveries, newest event first.", "deliveries", DeliveryAnswer, in_pages=True
)
SessionAnswer: Final = answer_model("SessionAnswer", Session)
SessionPageAnswer: Final = list_model(
    "SessionPageAnswer", "A page of sessions, newest first.", "sessions", SessionAnswer, in_pages=True
)


class DeveloperApi:
    """The endpoints, one method each. `http/errors.py` turns service errors into responses."""

    def __init__(self, use_cases: UseCases, metrics: Metrics, limits: RateLimits) -> None:
        self._developers = use_cases.developers
        self._projects = use_cases.projects
        self._session_reader = use_cases.session_reader
        self._analytics = use_cases.analytics
        self._deliveries = use_cases.deliveries
        self._audit = use_cases.audit
        self._plans = use_cases.plans
        self._metrics = metrics
        self._limits = limits
        self._endpoints: dict[type, object] = {
            DeveloperApi: self,
            ProjectEndpoints: ProjectEndpoints(use_cases.projects, use_cases.bots, limits, self._across_projects),
            MemberEndpoints: MemberEndpoints(use_cases.members),
            UserEndpoints: UserEndpoints(
                use_cases.users, use_cases.exports, use_cases.erasure, limits, self._across_projects
            ),
            ClientEndpoints: ClientEndpoints(use_cases.clients, use_cases.client_grants),
        }

    def build_app(self, authenticate: Callable[[Request, Response], Awaitable[None]] | None = None) -> FastAPI:
        """Return the application that serves `/api/v1/dev/*`. Requests must keep their full path.

        `authenticate` replaces the authentication: see `runtime/operator_api.py`.
        """
        app = FastAPI(
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
            routes=_ROUTES,
            # FastAPI's own telemetry exports paths, addresses and the text of errors. See taproof.tracing instead.
            telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        )
        app.state.endpoints = self._endpoints
        app.state.authenticate = authenticate or self.authenticate
        install_error_handlers(app)
        answer_invalid_parameters(app)
        app.add_middleware(TellLimits, limits=self._limits)
        app.add_middleware(CountRequests, metrics=self._metrics)
        return app

    async def authenticate(self, request: Request, response: Response) -> None:
        """Authenticate the caller of any endpoint, apply the rate limits, and set the response headers.

        Responses can contain secrets, so they must not be cached. `NO_PAGE` stops browsers from showing them as a page.
        """
        request.state.authenticate = partial(self._developers.authenticate, bearer_token(request.scope))
        try:
            token, developer = await request.state.authenticate()
        except InvalidAccessToken:
            route: str = request.scope["route"].path_format
            self._limits.refused_credentials.note("access_token", request.scope, route)
            raise
        # `http/https_only.py` has already replaced a trusted proxy's address with the client's.
        address = request.client.host if request.client else ""
        request.state.actor = Actor(developer, "access_token", token.id, address, token.grant)
        self._limits.developers.count_call(
            request.scope,
            request.state.actor,
            writes=request.method != "GET",
            way_out=(request.method, request.scope["route"].path_format) in _WAYS_OUT,
        )
        response.headers["Cache-Control"] = "no-store"
        response.headers.raw.extend(NO_PAGE)

    @asynccontextmanager
    async def _across_projects(self, caller: Developer, project_id: str | None = None) -> AsyncIterator[None]:
        """Let a developer run one call across all projects at a time. Each call costs as much as there are projects."""
        limits = self._limits.developers
        if project_id is None:
            await limits.weigh(caller.id, self._projects.count_projects)
        async with limits.turn(caller.id):
            yield

    async def read_account(self, writer: Writer) -> dict[str, Any]:
        """Return the account that the access token belongs to. Use it to check that the token is valid."""
        async with self._across_projects(writer.developer):
            usage = await self._plans.read_usage(writer.developer)
        return {**json_fields.account(writer.developer), "usage": dataclasses.asdict(usage)}

    async def send_webhook_test(
        self,
        writer: Writer,
        project_id: ProjectId,
        body: Annotated[dict[str, Any], json_body(SendWebhookTest, may_be_empty=True)],
    ) -> dict[str, Any]:
        """Send one test event to the webhook URL, without retries, and return the delivery. The body is optional.

        The call waits up to 10 seconds for the receiver. It returns 200 even if the delivery failed.
        """
        return json_fields.delivery(await self._deliveries.send_test(writer, project_id, body["event"]))

    async def list_deliveries(
        self,
        caller: Caller,
        project_id: ProjectId,
        *,
        event: Annotated[EventType | None, Query(description="Return only events of this type.")] = None,
        status: Annotated[DeliveryState | None, Query(description="Return only deliveries with this status.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Return one page of a project's webhook deliveries with their latest 50 attempts each, newest event first.

        A page can contain fewer than `limit` deliveries, because it never contains more than 400 attempts.
        """
        async with self._limits.developers.turn(caller.id):
            page = await self._deliveries.list_deliveries(
                caller, project_id, event_type=event, state=status, limit=limit, cursor=cursor
            )
            found = []
            for delivery in page.deliveries:
                found.append(ENCODE(json_fields.delivery(delivery)))
                await asyncio.sleep(0)  # Each can have 50 attempts: let other tasks run in between.
        return _json_answer(f'{{"deliveries":[{",".join(found)}],"next_cursor":{json.dumps(page.next_cursor)}}}')

    async def read_delivery(self, caller: Caller, delivery_id: DeliveryId) -> dict[str, Any]:
        """Return one webhook delivery with its latest 50 attempts, in the same form as in the list."""
        return json_fields.delivery(await self._deliveries.read_delivery(caller, delivery_id))

    async def resend_delivery(self, writer: Writer, delivery_id: DeliveryId) -> dict[str, Any]:
        """Send an event again now, with all retries, regardless of its status. Takes no body.

        An event that is being sent now is left unchanged.
        """
        return json_fields.delivery(await self._deliveries.resend_delivery(writer, delivery_id))

    async def list_sessions(
        self,
        caller: Caller,
        project_id: OneProject = None,
        status: Annotated[SignInStatus | None, Query(description="Return only sessions with this status.")] = None,
        *,
        since: parameters.Since = None,
        until: parameters.Until = None,
        messenger_id: parameters.MessengerId = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return one page of the sessions across your projects, newest first."""
        async with self._across_projects(caller, project_id):
            page = await self._session_reader.list_sessions(
                caller,
                project_id=project_id,
                status=status,
                limit=limit,
                cursor=cursor,
                since=since,
                until=until,
                messenger_id=messenger_id,
            )
        return {"sessions": [json_fields.session(each) for each in page.sessions], "next_cursor": page.next_cursor}

    async def read_session(self, caller: Caller, session_id: SessionId) -> dict[str, Any]:
        """Return one session, in the same form as in the list."""
        async with self._across_projects(caller):
            return json_fields.session(await self._session_reader.read_session(caller, session_id))

    async def read_analytics(
        self, caller: Caller, days: parameters.Days = 30, project_id: OneProject = None
    ) -> dict[str, Any]:
        """Return analytics for a number of days: totals, conversion rate, daily counts and the funnel."""
        async with self._across_projects(caller):
            return json_fields.analytics(await self._analytics.read_analytics(caller, days=days, project_id=project_id))

    async def list_access_tokens(self, caller: Caller) -> dict[str, Any]:
        """Return your access tokens, newest first. Their plaintext is not stored and so not returned."""
        async with self._limits.developers.turn(caller.id):
            found = await self._developers.list_access_tokens(caller.id)
        return {"tokens": [json_fields.access_token(token) for token in found]}

    async def create_access_token(
        self, writer: Writer, body: Annotated[dict[str, Any], json_body(CreateAccessToken)]
    ) -> dict[str, Any]:
        """Create another access token for your account. Keep it: it is shown only once.

        It cannot have more scopes than the token that makes this request, or expire later.
        """
        expires_at = read_instant(body["expires_at"], "expires_at") if "expires_at" in body else None
        created = await self._developers.create_access_token(
            writer, body["name"], expires_at=expires_at, scopes=body.get("scopes")
        )
        return json_fields.created_access_token(created)

    async def delete_access_token(
        self,
        writer: Writer,
        token_id: AccessTokenId,
        created: Annotated[
            Literal["revoke", "keep"],
            Query(description="Revoke or keep the access tokens that were created with it, directly or indirectly."),
        ] = "revoke",
    ) -> DeletedAnswer:
        """Revoke an access token immediately and permanently. By default, tokens created with it are revoked too.

        A token needs no scope to revoke itself.
        """
        await self._developers.delete_access_token(writer, token_id, keep_created=created == "keep")
        return DeletedAnswer(deleted=True)

    async def list_audit_entries(
        self, caller: Caller, project_id: AuditedProject = None, *, limit: Limit = 50, cursor: Cursor = None
    ) -> dict[str, Any]:
        """Return one page of an audit log, newest entry first: who changed what, when, and from where.

        Without `project_id`, these are your own entries. With it, these are the entries of all members.

        Entries never change. Entries older than the operator's retention period are erased; the log then ends with an
        entry whose action is audit.purged, which states how many were erased.
        """
        page = await self._audit.list_audit_entries(caller, limit=limit, cursor=cursor, project_id=project_id)
        return {"entries": [json_fields.audit_entry(each) for each in page.entries], "next_cursor": page.next_cursor}


def _json_answer(text: str) -> Response:
    """Return a response from ready-made JSON, with the headers that `authenticate` sets on the other responses."""
    response = Response(text, media_type="application/json", headers={"Cache-Control": "no-store"})
    response.headers.raw.extend(NO_PAGE)
    return response


async def _authenticate(request: Request, response: Response) -> None:
    await request.app.state.authenticate(request, response)


def _endpoint(kind: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that calls `method` of the object of this kind that belongs to the application."""

    async def find(request: Request) -> Any:
        return request.app.state.endpoints[kind]

    signature = inspect.signature(method)
    own, *others = signature.parameters.values()
    # FastAPI reads the source of an endpoint for its first request, but not of a partial function.
    endpoint: Any = partial(method)
    found = own.replace(annotation=Annotated[Any, Depends(find)])
    endpoint.__signature__ = signature.replace(parameters=[found, *others])
    return cast("Callable[..., Any]", endpoint)


def _make_routes() -> list[BaseRoute]:
    """Return the route of every endpoint. Each reaches the services through the application that answers a request."""
    router = APIRouter(prefix=PREFIX, dependencies=[Depends(_authenticate)])

    def add(
        tag: str,
        method: str,
        path: str,
        endpoint: Callable[..., Any],
        answer: type[BaseModel] | None = None,
        *,
        kind: type,
    ) -> None:
        options: dict[str, Any] = {} if answer is None else {"response_model": answer}
        if body := body_of(endpoint):
            content = {"application/json": {"schema": body.model.model_json_schema()}}
            options["openapi_extra"] = {"requestBody": {"required": not body.may_be_empty, "content": content}}
        router.add_api_route(
            path,
            _endpoint(kind, endpoint),
            methods=[method],
            tags=[tag],
            name=endpoint.__name__,
            description=inspect.getdoc(endpoint),
            operation_id=endpoint.__name__,
            summary=endpoint.__name__.replace("_", " ").capitalize(),
            response_model_exclude_unset=True,  # Some responses omit a field, such as messenger_phone.
            **options,
        )

    add_own, api = partial(add, kind=DeveloperApi), DeveloperApi
    add_own("Account", "GET", "/me", api.read_account, OwnAccountAnswer)
    for kind in (ProjectEndpoints, MemberEndpoints, UserEndpoints, ClientEndpoints):
        kind.add_routes(partial(add, kind=kind))
    webhooks, project = WEBHOOKS_TAG, "/projects/{project_id}"
    add_own(webhooks, "POST", f"{project}/webhook-test", api.send_webhook_test, DeliveryAnswer)
    add_own(webhooks, "GET", f"{project}/deliveries", api.list_deliveries, DeliveryPageAnswer)
    add_own(webhooks, "GET", "/deliveries/{delivery_id}", api.read_delivery, DeliveryAnswer)
    add_own(webhooks, "POST", "/deliveries/{delivery_id}/resend", api.resend_delivery, DeliveryAnswer)
    add_own("Sessions and analytics", "GET", "/sessions", api.list_sessions, SessionPageAnswer)
    add_own("Sessions and analytics", "GET", "/sessions/{session_id}", api.read_session, SessionAnswer)
    add_own("Sessions and analytics", "GET", "/analytics", api.read_analytics, AnalyticsAnswer)
    add_own("Access tokens", "GET", "/tokens", api.list_access_tokens, AccessTokenListAnswer)
    add_own("Access tokens", "POST", "/tokens", api.create_access_token, CreatedAccessTokenAnswer)
    add_own("Access tokens", "DELETE", "/tokens/{token_id}", api.delete_access_token)
    add_own("Audit log", "GET", "/audit", api.list_audit_entries, AuditPageAnswer)
    return router.routes


_ROUTES: Final = _make_routes()
"""The routes of all applications of this process, because FastAPI takes a millisecond or two to make each."""
