"""Commands that call the developer API: on the local database, or on a service of `taproof login`.

A command makes the same calls in both cases, and so has one implementation. Locally, the API's application answers in
this process and acts for a developer, without HTTP (`runtime/operator_api.py`).
"""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import asyncio
import contextlib
import inspect
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote, urlencode

import typer

from taproof.cli.command import STORE, AsJson, Given, NoDatabase, command, load, require_database
from taproof.cli.credentials import CredentialsUnusable, open_credentials
from taproof.cli.output import print_json
from taproof.cli.remote import Answer, ServiceUnusable, open_remote, signed_in_service
from taproof.config.settings import InvalidSettings
from taproof.core.accounts import Developer
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeveloperNotFound, InvalidRequest, ProjectNotFound, TaproofError
from taproof.core.identifiers import PROJECT_ID_RULE, is_project_id
from taproof.service.developers import Developers
from taproof.storage.protocol import Storage

API_SETTINGS: Final = (*STORE, "master_key")
_PREFIX: Final = "/api/v1/dev"
_ANSWER_LIMIT: Final = 64 * 1024 * 1024
"""The maximum length of an answer, in bytes: the list of 1,000 projects."""
_ITEMS: Final = 10_000
"""The maximum number of objects in a list. A service has at most 1,000 projects for a developer, and pages of 200."""
_WHERE: Final = "Where"
"""The group of these options in `--help`."""

ProjectId = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="The id that `projects list` shows: proj_…")]
Limit = Annotated[int, typer.Option(min=1, max=200, metavar="N", help="The maximum number of lines.")]
Cursor = Annotated[
    str | None, typer.Option(metavar="CURSOR", show_default=False, help="Continue where the list before ended.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
ServiceUrl = Annotated[
    str | None,
    typer.Option(
        "--service",
        metavar="URL",
        help="Act on this service, after `taproof login URL`, instead of the local database.",
        rich_help_panel=_WHERE,
    ),
]
DeveloperEmail = Annotated[
    str | None,
    typer.Option(
        "--developer",
        metavar="EMAIL",
        help="The developer to act for on the local database. Default: an owner of the project, or the only developer.",
        rich_help_panel=_WHERE,
    ),
]


class Refused(TaproofError, code="refused"):
    """The developer API refused a call; the sentence is the API's own."""


class NotConfirmed(TaproofError, code="not_confirmed"):
    """The question of a command was not answered with yes."""

    sentence = "Nothing was changed. To skip the question, add --yes."


Receive = Callable[[bytes], object]
_SendCall = Callable[[str, str, dict[str, Any] | None, Receive | None], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command: the JSON for programs, and a function that prints it for people."""

    fields: Mapping[str, Any]
    show: Callable[[], None]


class DeveloperCalls:
    """Calls the developer API. `send` makes one call; `address` is the service, or "" for the local database."""

    def __init__(self, send: _SendCall, address: str = "") -> None:
        self._send = send
        self._address = address

    async def call(
        self,
        method: str,
        path: Sequence[str],
        body: dict[str, Any] | None = None,
        *,
        receive: Receive | None = None,
        **query: Any,
    ) -> dict[str, Any]:
        """Make one call and return the JSON of its answer.

        Args:
            method: the HTTP method.
            path: the parts of the path below `/api/v1/dev`, such as `("projects", project_id)`.
            body: the fields of the body, if it has one.
            receive: is given the answer in pieces, however long it is. The result is then {}.
            query: the fields of the query; those that are None are left out.

        Raises:
            InvalidRequest: a part of the path cannot be an id.
            Refused: the API answered with an error.
            ServiceUnusable: there was no usable answer.
        """
        if not all(part.strip(".") for part in path):  # HTTP removes such parts, so the call would be another one.
            raise InvalidRequest("An id must not be empty, and must contain more than dots.")
        target = _PREFIX + "".join(f"/{quote(part, safe='')}" for part in path)
        fields = {name: value for name, value in query.items() if value is not None}
        answer = await self._send(method, f"{target}?{urlencode(fields)}" if fields else target, body, receive)
        if answer.status == 200 and receive is None and not answer.body:  # No call answers {}: this is another program.
            raise ServiceUnusable(f"{self._address or 'The service'} does not answer like a Taproof service.")
        if answer.status == 200:
            return answer.body
        if answer.code == "invalid_access_token" and self._address:
            raise Refused(f"{answer.sentence} To sign in again: taproof login {self._address}")
        raise Refused(answer.sentence)


@contextlib.asynccontextmanager
async def open_developer_api(
    given: Given, service: str | None, developer: str | None, project_id: str | None = None
) -> AsyncIterator[DeveloperCalls]:
    """Open the developer API of a service, or that of the local database if `service` is None.

    `developer` is the e-mail address of the developer to act for, and `project_id` the project of the command, if any.
    """
    if service is not None:
        if developer is not None:
            raise InvalidSettings(["Leave out --developer: with --service, commands act for the developer signed in."])
        address, credential = signed_in_service(open_credentials(), service)
        with open_remote(address) as remote:

            async def send_to_service(
                method: str, path: str, body: dict[str, Any] | None, receive: Receive | None
            ) -> Answer:
                bearer = credential.access_token
                return remote.call(method, path, body, bearer=bearer, answer_limit=_ANSWER_LIMIT, receive=receive)

            yield DeveloperCalls(send_to_service, address)
        return

    settings = load(given)
    async with offer_services():
        await require_database(settings)

    from taproof.runtime.operator_api import open_operator_api

    async def choose(storage: Storage) -> Developer:
        return await _acting_developer(storage, developer, project_id)

    async with open_operator_api(settings, choose) as app:

        async def send_to_app(method: str, path: str, body: dict[str, Any] | None, receive: Receive | None) -> Answer:
            return await _answer_of(app, method, path, body, receive)

        yield DeveloperCalls(send_to_app)


@contextlib.asynccontextmanager
async def offer_services() -> AsyncIterator[None]:
    """If there is no local database, name the services of `taproof login` in the error.

    On a laptop, a command without --service is usually meant for one of them.
    """
    try:
        yield
    except NoDatabase as error:
        services: list[str] = []
        with contextlib.suppress(CredentialsUnusable):
            services = sorted(open_credentials().read())
        if not services:
            raise
        options = " or ".join(f"--service {each}" for each in services)
        raise NoDatabase(f"{error.sentence}\nTo act on a service that you are signed in to, add {options}") from None


async def _acting_developer(storage: Storage, email: str | None, project_id: str | None) -> Developer:
    """Return the developer for whom a command acts: the named one, an owner of the project, or the only one."""
    developers = Developers(storage, system_clock, system_entropy)
    if email is not None:
        return await developers.read_developer(email)
    if project_id is not None:
        if not is_project_id(project_id):
            raise InvalidRequest(f"The project id must be {PROJECT_ID_RULE}.")
        owners = [each.email for each in await storage.members.list_members(project_id) if each.role == "owner"]
        if not owners:
            raise ProjectNotFound
        return await developers.read_developer(owners[0])
    found = await developers.list_developers()
    if len(found) == 1:
        return found[0]
    if not found:
        raise DeveloperNotFound("There are no developers. Add one with: taproof developers add EMAIL")
    several = "There are several developers. Name one with --developer EMAIL. To list them: taproof developers list"
    raise InvalidSettings([several])


async def _answer_of(app: Any, method: str, path: str, body: dict[str, Any] | None, pass_on: Receive | None) -> Answer:
    """Make one call to an ASGI application. `pass_on` is given the body of a successful response."""
    content = b"" if body is None else json.dumps(body).encode()
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-length", b"%d" % len(content))]
        + ([] if body is None else [(b"content-type", b"application/json")]),
        "client": None,
        "server": None,
        "state": {},
    }
    status, code, received = 0, "", bytearray()

    requests = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # The client stays.
        return requests.pop()

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, code
        if message["type"] == "http.response.start":
            status = message["status"]
            code = dict(message["headers"]).get(b"x-error-code", b"").decode()
        elif pass_on is not None and status == 200:
            pass_on(message.get("body", b""))
        else:
            received.extend(message.get("body", b""))

    await app(scope, receive, send)
    return Answer("", status, code, json.loads(received or b"{}"))


def api_command(commands: typer.Typer, name: str, *settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a coroutine function as a command. Its first argument is the opened developer API; it returns an `Output`.

    The options that say where the command acts, and `--json`, are added. `settings` are further settings that the
    command needs on the local database.
    """

    def add(work: Callable[..., Awaitable[Output]]) -> Callable[..., Awaitable[Output]]:
        _, *own = inspect.signature(work).parameters.values()

        async def run(
            given: Given,
            *,
            as_json: AsJson = False,
            service: ServiceUrl = None,
            developer: DeveloperEmail = None,
            **values: Any,
        ) -> None:
            async with open_developer_api(given, service, developer, values.get("project_id")) as api:
                print_output(await work(api, **values), as_json=as_json)

        first, *where, _ = inspect.signature(run).parameters.values()
        run.__signature__ = inspect.Signature([first, *own, *where])  # type: ignore[attr-defined]  # `command` reads it.
        run.__doc__ = work.__doc__
        command(commands, name, *API_SETTINGS, *settings)(run)
        return work

    return add


def print_output(output: Output, *, as_json: bool) -> None:
    """Print the result of a command for programs or for people."""
    if as_json:
        print_json(output.fields)
    else:
        output.show()


def items_of(answer: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """Return the list of objects in a field of an answer.

    Raises:
        ServiceUnusable: there is none, or it is too long. A remote address may belong to another program.
    """
    items = answer.get(field)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ServiceUnusable(f"The service does not answer like a Taproof service: {field} is missing.")
    if len(items) > _ITEMS:
        raise ServiceUnusable(f"The service does not answer like a Taproof service: {field} has too many items.")
    return items


def confirm(question: str, *, yes: bool) -> None:
    """Ask the person on stderr, because stdout is for the result, unless `yes` is given.

    Raises:
        NotConfirmed: the answer is not yes, or there is none.
    """
    if yes:
        return
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo(err=True)
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotConfirmed
