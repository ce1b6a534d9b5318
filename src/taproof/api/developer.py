"""The developer endpoints, `/api/v1/dev/*` (contract.md, Developer endpoints).

The caller is recognised before anything else of a request is looked at, so that a stranger learns nothing but 401.
An unknown path is 404 and a wrong method 405, HEAD among them, whoever asks. The docstrings of the endpoints are
their descriptions in the API reference.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.datastructures import Default
from pydantic import BaseModel, BeforeValidator, ValidationError, WithJsonSchema

from taproof.api import project_fields, schemas, serializers
from taproof.api.audit import AuditPageAnswer, show_page
from taproof.api.project_fields import RotateWebhookSecret, RotationAnswer
from taproof.core.accounts import Actor, Developer
from taproof.core.deliveries import DeliveryState, EventType
from taproof.core.errors import InvalidAccessToken, InvalidRequest
from taproof.core.model import Status
from taproof.http.body import read_json_object
from taproof.http.errors import NO_PAGE, bearer_token, install_error_handlers
from taproof.http.instants import read_instant
from taproof.http.limits.developers import TellLimits
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import CountRequests, Metrics
from taproof.http.validation import validation_sentence
from taproof.service.analytics import AnalyticsReader, Window
from taproof.service.audit import AuditLog
from taproof.service.bots import Bots
from taproof.service.deliveries import Deliveries
from taproof.service.developers import Developers
from taproof.service.erasure import Erasure
from taproof.service.plans import Plans
from taproof.service.projects import Projects, Rotation
from taproof.service.sessions.list import SessionReader

PREFIX: Final = "/api/v1/dev"
PAGE_LIMIT: Final = 200
"""Sessions, deliveries or entries of the audit log on a page at most."""

_WAYS_OUT: Final = frozenset({("GET", f"{PREFIX}/tokens"), ("DELETE", f"{PREFIX}/tokens/{{token_id}}")})
"""With these a developer gets rid of a stolen token: see `developer_limits.py`."""

Model = TypeVar("Model", bound=BaseModel)


def build_developer_api(
    developers: Developers,
    projects: Projects,
    sessions: SessionReader,
    analytics: AnalyticsReader,
    deliveries: Deliveries,
    *,
    audit: AuditLog,
    bots: Bots,
    plans: Plans,
    erasure: Erasure,
    metrics: Metrics,
    limits: RateLimits,
) -> FastAPI:
    """Return the application that answers `/api/v1/dev/*`; requests must come with their whole path."""
    api = DeveloperApi(
        developers,
        projects,
        sessions,
        analytics,
        deliveries,
        audit=audit,
        bots=bots,
        plans=plans,
        erasure=erasure,
        limits=limits,
    )
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(api.authenticate)],
    )
    install_error_handlers(app)
    app.add_middleware(TellLimits, limits=limits)
    app.add_middleware(CountRequests, metrics=metrics)
    api.add_routes(app)
    return app


async def _actor(request: Request) -> Actor:
    return cast("Actor", request.state.actor)


async def _caller(request: Request) -> Developer:
    actor = await _actor(request)
    actor.grant.require("read")
    return actor.developer


def _body(model: type[Model], *, may_be_empty: bool = False) -> Any:
    """Make a dependency that reads the body as `model`; FastAPI's own reading would come before authentication."""

    async def read(request: Request) -> Model:
        document = await read_json_object(request.scope, request.receive, may_be_empty=may_be_empty)
        # Once more: the token may have been revoked while the body was on its way.
        await request.state.authenticate()
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise InvalidRequest(validation_sentence(error.errors(include_url=False))) from None

    return Depends(read)


def _page_size(value: Any) -> Any:
    if isinstance(value, str):
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(PAGE_LIMIT)) else 0
        if not 1 <= number <= PAGE_LIMIT:
            raise InvalidRequest(f"limit must be a whole number from 1 to {PAGE_LIMIT}.")
        return number
    return value


def _window(value: Any) -> Any:
    return {"7": 7, "30": 30, "90": 90}.get(value, value) if isinstance(value, str) else value


def _instant(field: str) -> Callable[[Any], Any]:
    return lambda value: read_instant(value, field) if isinstance(value, str) else value


_INSTANT: Final = WithJsonSchema({"type": "string", "format": "date-time"})
Caller = Annotated[Developer, Depends(_caller)]
"""Who reads; the token needs the scope `read`."""
Writer = Annotated[Actor, Depends(_actor)]
"""Who changes something, as the audit log tells of it. The services ask for the scope that a change needs."""
Limit = Annotated[
    int,
    BeforeValidator(_page_size),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": PAGE_LIMIT, "default": 50}),
    Query(description="How many a page holds."),
]
Days = Annotated[
    Window,
    BeforeValidator(_window),
    WithJsonSchema({"type": "integer", "enum": [7, 30, 90], "default": 30}),
    Query(description="The window: so many UTC days, today last."),
]
OneProject = Annotated[schemas.ProjectId | None, Query(description="One project only. Left out: all of your projects.")]
Since = Annotated[
    Annotated[int, BeforeValidator(_instant("since")), _INSTANT] | None,
    Query(description="Sessions that were started at this time or later. In an address, + is written %2B."),
]
Until = Annotated[
    Annotated[int, BeforeValidator(_instant("until")), _INSTANT] | None,
    Query(description="Sessions that were started before this time."),
]
MessengerId = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,20}$"})] | None,
    Query(description="Sessions that this messenger account confirmed."),
]
UserId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,20}$"}),
    Path(description="The user's messenger account.", examples=["123456789"]),
]
Cursor = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"})] | None,
    Query(description="The next_cursor of the page before. Left out: the first page."),
]


class DeveloperApi:
    """The endpoints. Each method answers one; what services raise becomes an answer in `errors.py`."""

    def __init__(
        self,
        developers: Developers,
        projects: Projects,
        sessions: SessionReader,
        analytics: AnalyticsReader,
        deliveries: Deliveries,
        *,
        audit: AuditLog,
        bots: Bots,
        plans: Plans,
        erasure: Erasure,
        limits: RateLimits,
    ) -> None:
        self._developers = developers
        self._projects = projects
        self._sessions = sessions
        self._analytics = analytics
        self._deliveries = deliveries
        self._audit = audit
        self._bots = bots
        self._plans = plans
        self._erasure = erasure
        self._limits = limits

    async def authenticate(self, request: Request, response: Response) -> None:
        """Recognise the caller of any endpoint. What it then answers may hold secrets and is not to be cached.

        It answers with JSON, and says so to a browser as `error_response` does for what goes wrong.
        """
        request.state.authenticate = partial(self._developers.authenticate, bearer_token(request.scope))
        try:
            token, developer = await request.state.authenticate()
        except InvalidAccessToken:
            route: str = request.scope["route"].path_format
            self._limits.refused_credentials.note("access_token", request.scope, route)
            raise
        # Behind a trusted proxy this is the client's address already: see `https_only.py`.
        address = request.client.host if request.client else ""
        request.state.actor = Actor(developer, "access_token", token.id, address, token.grant)
        self._limits.developers.take(
            request.scope,
            request.state.actor,
            writes=request.method != "GET",
            way_out=(request.method, request.scope["route"].path_format) in _WAYS_OUT,
        )
        response.headers["Cache-Control"] = "no-store"
        response.headers.raw.extend(NO_PAGE)

    @asynccontextmanager
    async def _across_projects(self, caller: Developer, project_id: str | None = None) -> AsyncIterator[None]:
        """Let calls of one developer look across their projects in turn, and count them by the number of projects."""
        limits = self._limits.developers
        if project_id is None:
            await limits.weigh(caller.id, self._projects.count_projects)
        async with limits.turn(caller.id):
            yield

    async def read_account(self, writer: Writer) -> schemas.OwnAccountAnswer:
        """Return the account that the access token belongs to: a way to check that the token is valid."""
        developer = writer.developer
        async with self._across_projects(developer):
            return serializers.own_account(developer, await self._plans.read_usage(developer))

    async def list_projects(self, caller: Caller) -> Response:
        """Return all of your projects, oldest first."""
        async with self._across_projects(caller):
            found = [_json(serializers.project(each)) async for each in self._projects.walk_projects(caller)]
        return _json_answer(f'{{"projects":[{",".join(found)}]}}')

    async def create_project(
        self, writer: Writer, body: Annotated[project_fields.CreateProject, _body(project_fields.CreateProject)]
    ) -> project_fields.CreatedProjectAnswer:
        """Create a project. Keep its secret_key: it is shown this once."""
        wanted = body.as_changes()
        bot = None
        if body.bot_token:
            self._projects.check_changes(writer, wanted)  # The messenger is asked once all else can be accepted.
            bot = await self._bots.check_token(writer, body.bot_token)
        project, secrets = await self._projects.create_project(writer, wanted, bot=bot)
        return serializers.created_project(project, secrets)

    async def read_project(self, caller: Caller, project_id: schemas.ProjectId) -> project_fields.ProjectAnswer:
        """Return one project."""
        return serializers.project(await self._projects.read_project(caller, project_id))

    async def update_project(
        self,
        writer: Writer,
        project_id: schemas.ProjectId,
        body: Annotated[project_fields.UpdateProject, _body(project_fields.UpdateProject)],
    ) -> project_fields.ProjectAnswer:
        """Change a project. Fields that are left out stay as they are."""
        changes = body.as_changes()
        bot = None
        if (bot_token := body.new_bot_token()) is not None:
            self._projects.check_changes(writer, changes)  # The messenger is asked once all else can be accepted.
            bot = await self._bots.check_change(writer, project_id, bot_token)
        return serializers.project(await self._projects.update_project(writer, project_id, changes, bot=bot))

    async def delete_project(self, writer: Writer, project_id: schemas.ProjectId) -> schemas.DeletedAnswer:
        """Delete a project with its sessions and analytics. This cannot be undone."""
        await self._projects.delete_project(writer, project_id)
        return schemas.DeletedAnswer(deleted=True)

    async def regenerate_secrets(self, writer: Writer, project_id: schemas.ProjectId) -> project_fields.SecretsAnswer:
        """Replace the secret key and the webhook secret. The old ones stop working at once. Takes no body."""
        return serializers.secrets(await self._projects.regenerate_secrets(writer, project_id))

    async def read_webhook_secret(self, writer: Writer, project_id: schemas.ProjectId) -> RotationAnswer:
        """Return the webhook secret, which proofs and webhooks are checked with, and during a rotation the next one.

        This needs the scope write, since proofs can be made with the secret.
        """
        return serializers.rotation(await self._projects.read_webhook_secret(writer, project_id))

    async def rotate_webhook_secret(
        self,
        writer: Writer,
        project_id: schemas.ProjectId,
        body: Annotated[RotateWebhookSecret, _body(RotateWebhookSecret, may_be_empty=True)],
    ) -> RotationAnswer:
        """Make the next webhook secret, which replaces the current one after an overlap: see Webhooks.

        The secret key stays. The body may be left out.
        """
        return serializers.rotation(
            await self._projects.rotate_webhook_secret(writer, project_id, overlap_hours=body.overlap_hours)
        )

    async def promote_webhook_secret(self, writer: Writer, project_id: schemas.ProjectId) -> RotationAnswer:
        """End a rotation now: the next webhook secret takes the place of the current one. Takes no body."""
        promoted = await self._projects.promote_webhook_secret(writer, project_id)
        return serializers.rotation(Rotation(promoted, None, None))

    async def send_webhook_test(self, writer: Writer, project_id: schemas.ProjectId) -> schemas.DeliveryAnswer:
        """Send an event of type webhook.test to the webhook URL, once, and return what came of it. Takes no body.

        The answer may take 10 seconds, as long as the receiver may; it is 200 whatever the receiver did.
        """
        return serializers.delivery(await self._deliveries.send_test(writer, project_id))

    async def list_deliveries(
        self,
        caller: Caller,
        project_id: schemas.ProjectId,
        *,
        event: Annotated[EventType | None, Query(description="Events of this type only.")] = None,
        status: Annotated[DeliveryState | None, Query(description="Deliveries in this status only.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Return a project's webhook deliveries with their latest 50 attempts, newest event first, page by page.

        A page may hold fewer than `limit`: it ends before it has more than 400 attempts.
        """
        async with self._limits.developers.turn(caller.id):
            page = await self._deliveries.list_deliveries(
                caller, project_id, event_type=event, state=status, limit=limit, cursor=cursor
            )
            found = []
            for delivery in page.deliveries:
                found.append(_json(serializers.delivery(delivery)))
                await asyncio.sleep(0)  # Each may have 50 attempts: others have their turn in between.
        return _json_answer(f'{{"deliveries":[{",".join(found)}],"next_cursor":{json.dumps(page.next_cursor)}}}')

    async def read_delivery(self, caller: Caller, delivery_id: schemas.DeliveryId) -> schemas.DeliveryAnswer:
        """Return one webhook delivery with its latest 50 attempts, as the list shows it."""
        return serializers.delivery(await self._deliveries.read_delivery(caller, delivery_id))

    async def resend_delivery(self, writer: Writer, delivery_id: schemas.DeliveryId) -> schemas.DeliveryAnswer:
        """Send an event again, now, and if need be with all retries, whatever became of it before. Takes no body.

        One that is being sent just now is left as it is.
        """
        return serializers.delivery(await self._deliveries.resend_delivery(writer, delivery_id))

    async def list_sessions(
        self,
        caller: Caller,
        project_id: OneProject = None,
        status: Annotated[Status | None, Query(description="Sessions in this status only.")] = None,
        *,
        since: Since = None,
        until: Until = None,
        messenger_id: MessengerId = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> schemas.SessionPageAnswer:
        """Return sessions across your projects, newest first, page by page."""
        async with self._across_projects(caller, project_id):
            page = await self._sessions.list_sessions(
                caller,
                project_id=project_id,
                status=status,
                limit=limit,
                cursor=cursor,
                since=since,
                until=until,
                messenger_id=messenger_id,
            )
        return schemas.SessionPageAnswer(
            sessions=[serializers.session(session) for session in page.sessions], next_cursor=page.next_cursor
        )

    async def read_session(self, caller: Caller, session_id: schemas.SessionId) -> schemas.SessionAnswer:
        """Return one session, as the list shows it."""
        async with self._across_projects(caller):
            return serializers.session(await self._sessions.read_session(caller, session_id))

    async def erase_user(self, writer: Writer, messenger_id: UserId) -> schemas.ErasedAnswer:
        """Erase what your projects keep of a user: sessions, phone number, webhook events, also those still to be sent.

        Counts stay, without the user. This cannot be undone; calling it again is safe. It may take some seconds.
        """
        async with self._across_projects(writer.developer):
            return schemas.ErasedAnswer(erased=await self._erasure.erase_user(writer, messenger_id))

    async def read_analytics(
        self, caller: Caller, days: Days = 30, project_id: OneProject = None
    ) -> schemas.AnalyticsAnswer:
        """Return what became of the sessions of the last days: totals, conversion, day by day, and the funnel."""
        async with self._across_projects(caller):
            return serializers.analytics(await self._analytics.read_analytics(caller, days=days, project_id=project_id))

    async def list_access_tokens(self, caller: Caller) -> schemas.AccessTokenListAnswer:
        """Return your access tokens, newest first. Their plaintext is not kept, so it is not shown."""
        async with self._limits.developers.turn(caller.id):
            found = await self._developers.list_access_tokens(caller.id)
        return schemas.AccessTokenListAnswer(tokens=[serializers.access_token(token) for token in found])

    async def create_access_token(
        self, writer: Writer, body: Annotated[schemas.CreateAccessToken, _body(schemas.CreateAccessToken)]
    ) -> schemas.CreatedAccessTokenAnswer:
        """Create another access token for your account. Keep it: it is shown this once.

        It never has more scopes than the token of this request, and expires no later.
        """
        created = await self._developers.create_access_token(
            writer, body.name, expires_at=body.expiry(), scopes=body.scopes or None
        )
        return serializers.created_access_token(created)

    async def delete_access_token(
        self,
        writer: Writer,
        token_id: schemas.AccessTokenId,
        created: Annotated[
            Literal["revoke", "keep"],
            Query(description="What becomes of the access tokens that were created with it, and with these in turn."),
        ] = "revoke",
    ) -> schemas.DeletedAnswer:
        """Revoke an access token and, unless you keep them, all tokens created with it, at once and for good.

        It may be the token that this request is made with; for that no scope is needed.
        """
        await self._developers.delete_access_token(writer, token_id, keep_created=created == "keep")
        return schemas.DeletedAnswer(deleted=True)

    async def list_audit_entries(self, caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> AuditPageAnswer:
        """Return your audit log, newest entry first, page by page: who changed what, when, and from where.

        An entry is never changed. One that is older than the operator keeps them is erased; the log then ends with an
        entry of action audit.purged, which says how many were.
        """
        return show_page(await self._audit.list_entries(caller, limit=limit, cursor=cursor))

    def add_routes(self, app: FastAPI) -> None:
        """Put every endpoint at its address."""

        def add(
            tag: str,
            method: str,
            path: str,
            endpoint: Callable[..., Any],
            body: type[BaseModel] | None = None,
            *,
            body_required: bool = True,
            answer: type[BaseModel] | None = None,
        ) -> None:
            app.add_api_route(
                PREFIX + path,
                endpoint,
                methods=[method],
                tags=[tag],
                operation_id=endpoint.__name__,
                summary=endpoint.__name__.replace("_", " ").capitalize(),
                # So that a field which is there only at times is left out at others.
                response_model_exclude_unset=True,
                # Of an endpoint that writes its answer itself.
                response_model=answer or Default(None),
                openapi_extra=None if body is None else _documented_body(body, required=body_required),
            )

        add("Account", "GET", "/me", self.read_account)
        add("Projects", "GET", "/projects", self.list_projects, answer=project_fields.ProjectListAnswer)
        add("Projects", "POST", "/projects", self.create_project, project_fields.CreateProject)
        add("Projects", "GET", "/projects/{project_id}", self.read_project)
        add("Projects", "PATCH", "/projects/{project_id}", self.update_project, project_fields.UpdateProject)
        add("Projects", "DELETE", "/projects/{project_id}", self.delete_project)
        add("Projects", "POST", "/projects/{project_id}/regenerate", self.regenerate_secrets)
        project = "/projects/{project_id}"
        webhooks = "Webhook secret and deliveries"
        secret = f"{project}/webhook-secret"
        rotation = RotateWebhookSecret
        add(webhooks, "GET", secret, self.read_webhook_secret)
        add(webhooks, "POST", f"{secret}/rotate", self.rotate_webhook_secret, rotation, body_required=False)
        add(webhooks, "POST", f"{secret}/promote", self.promote_webhook_secret)
        add(webhooks, "POST", f"{project}/webhook-test", self.send_webhook_test)
        add(webhooks, "GET", f"{project}/deliveries", self.list_deliveries, answer=schemas.DeliveryPageAnswer)
        add(webhooks, "GET", "/deliveries/{delivery_id}", self.read_delivery)
        add(webhooks, "POST", "/deliveries/{delivery_id}/resend", self.resend_delivery)
        add("Sessions and analytics", "GET", "/sessions", self.list_sessions)
        add("Sessions and analytics", "GET", "/sessions/{session_id}", self.read_session)
        add("Sessions and analytics", "DELETE", "/users/{messenger_id}", self.erase_user)
        add("Sessions and analytics", "GET", "/analytics", self.read_analytics)
        add("Access tokens", "GET", "/tokens", self.list_access_tokens)
        add("Access tokens", "POST", "/tokens", self.create_access_token, schemas.CreateAccessToken)
        add("Access tokens", "DELETE", "/tokens/{token_id}", self.delete_access_token)
        add("Audit log", "GET", "/audit", self.list_audit_entries)


def _json(answer: BaseModel) -> str:
    return answer.model_dump_json(exclude_unset=True)


def _json_answer(text: str) -> Response:
    """Return an answer that was written piece by piece, with the header fields that `authenticate` gives others."""
    response = Response(text, media_type="application/json", headers={"Cache-Control": "no-store"})
    response.headers.raw.extend(NO_PAGE)
    return response


def _documented_body(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}
