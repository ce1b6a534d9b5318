"""`taproof developers`: who may use the API, and who may sign in to the console."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import Given, command, load, with_developers, with_storage
from taproof.cli.output import SHOWN_ONCE, print_json, print_secrets, print_table, to_the_minute
from taproof.config.options import called
from taproof.core.accounts import Actor, Plan
from taproof.core.clock import iso8601, system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeveloperExists, DeveloperNotFound, InvalidRequest
from taproof.core.names import visible_name

if TYPE_CHECKING:
    from taproof.core.accounts import Developer
    from taproof.service.developers import Developers
    from taproof.service.invitations import CreatedInvitation
    from taproof.storage.protocol import Storage

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The developer's e-mail address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_STORE: Final = ("database_url", "pgbouncer", "sandbox")


def add_to(developers: typer.Typer) -> None:
    """Add the commands."""
    command(developers, "add", *_STORE)(add_developer)
    command(developers, "invite", *_STORE, "base_url")(invite_developer)
    command(developers, "plan", *_STORE)(change_plan)
    command(developers, "list", *_STORE)(list_developers)


def add_developer(
    given: Given,
    email: Email,
    *,
    plan: Annotated[Plan, typer.Option(help="The account's plan.")] = "free",
    as_json: AsJson = False,
) -> None:
    """Add a developer and print an access token, once."""

    async def work(found: "Developers") -> tuple[Any, Any]:
        try:
            developer = await found.create_developer(email, plan)
        except DeveloperExists as error:
            more = f"For another access token: taproof tokens create {shlex.quote(email)}"
            raise DeveloperExists(f"{error.sentence} {more}") from None
        return developer, await found.create_access_token(Actor(developer, "command_line"), "command line")

    developer, created = with_developers(given, work, may_make=True)

    from taproof.service import serializers

    if as_json:
        print_json({**serializers.account(developer), "access_token": created.plaintext})
    else:
        typer.echo(f"Added {developer.email}, plan {developer.plan}.")
        print_secrets(SHOWN_ONCE, [("Access token", created.plaintext)])


def invite_developer(
    given: Given,
    email: Email,
    *,
    plan: Annotated[Plan | None, typer.Option(help="The new account's plan.", show_default="free")] = None,
    owner: Annotated[bool, typer.Option("--owner", help="May invite others, as the first developer may.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a one-time link by which a developer comes in, with the messenger, to the console.

    For a developer that is there already the link binds a messenger account, in place of the one before.
    """
    base_url = load(given).base_url

    async def work(storage: "Storage") -> "CreatedInvitation":
        from taproof.service.developers import Developers
        from taproof.service.invitations import Invitations

        invitations = Invitations(storage, system_clock, system_entropy)
        try:
            developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        except DeveloperNotFound:
            is_owner = owner or not await storage.developers.list_developers()
            return await invitations.invite_developer(None, email, plan=plan or "free", is_owner=is_owner)
        if plan is not None or owner:
            raise InvalidRequest(
                f"{developer.email} is a developer already: --plan and --owner are for new ones. Leave them out."
            )
        return await invitations.invite_again(Actor(developer, "command_line"), developer)

    created = with_storage(given, work)
    invitation = created.invitation
    link = f"{base_url}/console/invite#{created.code}"
    until = iso8601(invitation.expires_at)
    if as_json:
        shown = {
            "id": invitation.id,
            "email": invitation.email,
            "plan": invitation.plan,
            "is_owner": invitation.is_owner,
            "developer_id": invitation.developer_id,
            "expires_at": until,
            "link": link,
        }
        print_json(shown)
    else:
        what = "Invited" if invitation.developer_id is None else "Made a link that binds a messenger account to"
        typer.echo(f"{what} {invitation.email}. It works once, until {to_the_minute(until)}.")
        print_secrets(SHOWN_ONCE, [("Link", link)])
        if "base_url" not in given:
            typer.echo(f"The link is for a service at {base_url}. If yours is elsewhere, give {called('base_url')}.")
        if invitation.developer_id is not None:
            quoted = shlex.quote(invitation.email)
            typer.echo(
                "It ends every browser's sign-in there, but access tokens live on. List them, and revoke what is not "
                f"known:\n  taproof tokens list {quoted}\n  taproof tokens revoke {quoted} TOKEN_ID"
            )


def change_plan(
    given: Given,
    email: Email,
    to_plan: Annotated[Plan, typer.Argument(metavar="PLAN", help="free, pro or business.", show_default=False)],
    *,
    as_json: AsJson = False,
) -> None:
    """Put a developer on another plan.

    On free their projects stop collecting phone numbers at once. What is over a limit of the new plan stays.
    """

    async def work(storage: "Storage") -> "tuple[Developer, bool]":
        from taproof.service.developers import Developers
        from taproof.service.plans import Plans

        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        plans = Plans(storage, system_clock, system_entropy, projects={}, sign_ins={})
        return developer, await plans.change_plan(developer, to_plan)

    developer, changed = with_storage(given, work)
    if as_json:
        before = developer.plan if changed else to_plan
        print_json({"id": developer.id, "email": developer.email, "plan": to_plan, "plan_before": before})
    elif not changed:
        typer.echo(f"{developer.email} is on the plan {to_plan} already.")
    else:
        typer.echo(f"{developer.email} is on the plan {to_plan} now; before it was {developer.plan}.")
        if to_plan == "free":
            typer.echo("Their projects collect no phone numbers from here on. Those that were collected are kept.")


def list_developers(given: Given, *, as_json: AsJson = False) -> None:
    """List all developers, oldest first."""
    found = with_developers(given, lambda developers: developers.list_developers())

    from taproof.service import serializers

    if as_json:
        more = ("is_owner", "messenger_id", "messenger_name")
        shown = [{**serializers.account(each), **{name: getattr(each, name) for name in more}} for each in found]
        print_json({"developers": shown})
    else:
        rows = [
            (
                each.email,
                each.plan,
                "yes" if each.is_owner else "no",
                visible_name(f"{each.messenger_name} {each.messenger_id}") if each.messenger_id else "",
                to_the_minute(iso8601(each.created_at)),
                each.id,
            )
            for each in found
        ]
        columns = ("email", "plan", "owner", "messenger account", "created", "id")
        print_table(columns, rows, empty="There are none. Add one with: taproof developers add EMAIL")
