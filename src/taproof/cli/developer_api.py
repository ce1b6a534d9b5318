"""Commands that call the developer API: on the local database, or on a service of `taproof login`.

A command makes the same calls in both cases, and so has one implementation. Locally, the API's application answers in
this process and acts for a developer, without HTTP (`runtime/operator_api.py`).
"""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import asyncio
import contextlib
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Concatenate, Final, ParamSpec, cast

import typer

from taproof.cli.command import STORE, AsJson, Given, NoDatabase, command, load, require_database
from taproof.cli.credentials import CredentialsUnusable, open_credentials
from taproof.cli.output import Column, print_items, print_json, print_next_page
from taproof.cli.remote import Receive, call_failed, open_remote, signed_in_service
from taproof.config.settings import InvalidSettings
from taproof.core.accounts import Developer
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeveloperNotFound, InvalidRequest, ProjectNotFound, TaproofError
from taproof.core.identifiers import PROJECT_ID_RULE, is_project_id
from taproof.sdk.api_errors import TaproofApiError
from taproof.sdk.exchange import Call, CallResult, HttpResponse, Request, Service
from taproof.sdk.retries import document
from taproof.service.developers import Developers
from taproof.storage.protocol import Storage

P = ParamSpec("P")
_Send = Callable[[Request, Receive | None], Awaitable[CallResult]]

API_SETTINGS: Final = (*STORE, "master_key")
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


class NotConfirmed(TaproofError, code="not_confirmed"):
    """The question of a command was not answered with yes."""

    sentence = "Nothing was changed. To skip the question, add --yes."


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command: the JSON for programs, and a function that prints it for people."""

    fields: Mapping[str, Any]
    show: Callable[[], None]


class CallRunner:
    """Runs the SDK's calls on a service or on the local database. `send` sends the request of a call."""

    def __init__(self, service: Service, send: _Send) -> None:
        self._service = service
        self._send = send

    async def call(
        self, call: Callable[Concatenate[Service, P], Call[Any]], /, *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Any]:
        """Make a call without retries, and return the JSON of its response. The types of its fields are checked."""
        return await self.run(lambda service: call(service, *args, **kwargs))

    async def run(self, begin: Callable[[Service], Call[Any]], receive: Receive | None = None) -> dict[str, Any]:
        """Make the call that `begin` returns, as `call` does.

        `receive` is given the body of a successful response in pieces, however long it is. The result is then {}.
        """
        try:
            call = begin(self._service)
            request = cast("Request", next(call))
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        outcome = await self._send(request, receive)
        if receive is not None and isinstance(outcome, HttpResponse) and outcome.status == 200:
            return {}
        try:
            answer = document(self._service, outcome)
            with contextlib.suppress(StopIteration):
                call.send(outcome)  # Checks the types of the fields.
        except TaproofApiError as error:
            raise call_failed(self._service.address, error) from None
        return answer


@contextlib.asynccontextmanager
async def open_developer_api(
    given: Given, service: str | None, developer: str | None, project_id: str | None = None
) -> AsyncIterator[CallRunner]:
    """Open the developer API of a service, or that of the local database if `service` is None.

    `developer` is the e-mail address of the developer to act for, and `project_id` the project of the command, if any.
    """
    if service is not None:
        if developer is not None:
            raise InvalidSettings(["Leave out --developer: with --service, commands act for the developer signed in."])
        address, credential = signed_in_service(open_credentials(), service)
        with open_remote(address, credential.access_token) as remote:

            async def send_to_service(request: Request, receive: Receive | None) -> CallResult:
                # Not in a thread, because a thread would continue after Ctrl-C.
                return remote.send(request, receive)

            yield CallRunner(remote.service, send_to_service)
        return

    settings = load(given)
    async with offer_services():
        await require_database(settings)

    from taproof.runtime.operator_api import open_operator_api

    async def choose(storage: Storage) -> Developer:
        return await _acting_developer(storage, developer, project_id)

    async with open_operator_api(settings, choose) as app:
        yield CallRunner(Service(address="", access_token=""), partial(_answer_of, app))


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


async def _answer_of(app: Any, request: Request, pass_on: Receive | None) -> HttpResponse:
    """Send a request to an ASGI application. `pass_on` is given the body of a successful response."""
    content = request.content() or b""
    path, _, query = request.path.partition("?")
    headers = {"host": "localhost", "content-length": str(len(content)), **request.headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": None,
        "server": None,
        "state": {},
    }
    status, received, body = 0, {}, bytearray()

    requests = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # The client stays connected.
        return requests.pop()

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, received
        if message["type"] == "http.response.start":
            status = message["status"]
            received = {name.decode(): value.decode() for name, value in message["headers"]}
        elif pass_on is not None and status == 200:
            pass_on(message.get("body", b""))
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, send)
    return HttpResponse(status, received, bytes(body))


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


def list_output(answer: Mapping[str, Any], field: str, columns: Mapping[str, Column], *, empty: str) -> Output:
    """Return the result of a command that lists the objects in a field of an answer."""

    def show() -> None:
        print_items(columns, answer[field], empty=empty)
        print_next_page(answer)

    return Output(answer, show)


def print_output(output: Output, *, as_json: bool) -> None:
    """Print the result of a command for programs or for people."""
    if as_json:
        print_json(output.fields)
    else:
        output.show()


def confirm(question: str, *, yes: bool) -> None:
    """Ask the person on stderr, because stdout is for the result, unless `yes` is given."""
    if yes:
        return
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo(err=True)
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotConfirmed
