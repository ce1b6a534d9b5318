"""`taproof developers`: the developers, who can use the API and sign in to the console."""

import shlex
from typing import Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Email, Given, command, group, load, open_developers, open_store
from taproof.cli.developer_api import Yes, confirm
from taproof.cli.output import print_json, print_secrets, print_table, to_the_minute
from taproof.config.options import called
from taproof.contract.account import Plan
from taproof.core.accounts import Actor
from taproof.core.clock import iso8601, system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import DeveloperExists, DeveloperNotFound, InvalidRequest
from taproof.core.names import visible_name
from taproof.service import json_fields
from taproof.service.developers import Developers
from taproof.service.invitations import Invitations
from taproof.service.plans import Plans

commands: Final = group("developers", "Manage developers, who use the API and the console.")


@command(commands, "add", *STORE)
async def add_developer(
    given: Given,
    email: Email,
    *,
    plan: Annotated[Plan, typer.Option(help="The account's plan.")] = "free",
    as_json: AsJson = False,
) -> None:
    """Add a developer and print an access token. It is shown only once."""
    async with open_developers(given, may_create=True) as developers:
        try:
            developer = await developers.create_developer(email, plan)
        except DeveloperExists as error:
            more = f"For another access token: taproof tokens create --developer {shlex.quote(email)}"
            raise DeveloperExists(f"{error.sentence} {more}") from None
        created = await developers.create_access_token(Actor(developer, "command_line"), "command line")
    if as_json:
        print_json({**json_fields.account(developer), "access_token": created.plaintext})
    else:
        typer.echo(f"Added {developer.email}, plan {developer.plan}.")
        print_secrets([("Access token", created.plaintext)])


@command(commands, "invite", *STORE, "base_url")
async def invite_developer(
    given: Given,
    email: Email,
    *,
    plan: Annotated[Plan | None, typer.Option(help="The new account's plan.", show_default="free")] = None,
    owner: Annotated[bool, typer.Option("--owner", help="Let the new developer invite others.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a one-time link for a developer to sign in to the console with the messenger.

    For an existing developer, the link replaces the linked messenger account.
    """
    settings = load(given)
    async with open_store(settings) as storage:
        invitations = Invitations(storage, system_clock, system_entropy)
        try:
            developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        except DeveloperNotFound:
            is_owner = owner or not await storage.developers.list_developers()
            created = await invitations.invite_developer(None, email, plan=plan or "free", is_owner=is_owner)
        else:
            if plan is not None or owner:
                raise InvalidRequest(
                    f"{developer.email} is already a developer. Leave out --plan and --owner, which "
                    "apply only to new developers."
                )
            created = await invitations.invite_again(Actor(developer, "command_line"), developer)
    invitation = created.invitation
    link = f"{settings.base_url}/console/invite#{created.code}"
    until = iso8601(invitation.expires_at)
    if as_json:
        fields = ("id", "email", "plan", "is_owner", "developer_id")
        shown = {name: getattr(invitation, name) for name in fields}
        print_json({**shown, "expires_at": until, "link": link})
        return
    what = "Invited" if invitation.developer_id is None else "Created an invitation that links a messenger account to"
    typer.echo(f"{what} {invitation.email}. The link works once, until {to_the_minute(until)}.")
    print_secrets([("Link", link)])
    if "base_url" not in given:
        typer.echo(
            f"The link is for a service at {settings.base_url}. If your service has another address, "
            f"set {called('base_url')}."
        )
    if invitation.developer_id is not None:
        quoted = shlex.quote(invitation.email)
        typer.echo(
            "Using the link signs the developer out of all browsers, but access tokens stay valid. List them, and "
            f"revoke those that you do not recognise:\n  taproof tokens list --developer {quoted}\n"
            f"  taproof tokens revoke --developer {quoted} TOKEN_ID"
        )


@command(commands, "plan", *STORE)
async def update_plan(
    given: Given,
    email: Email,
    to_plan: Annotated[Plan, typer.Argument(metavar="PLAN", help="free, pro or business.", show_default=False)],
    *,
    as_json: AsJson = False,
) -> None:
    """Change a developer's plan.

    On the free plan, the developer's projects immediately stop collecting phone numbers. Existing data that exceeds a
    limit of the new plan is kept.
    """
    async with open_store(load(given)) as storage:
        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        plans = Plans(storage, system_clock, system_entropy, projects={}, sign_ins={})
        changed = await plans.update_plan(developer, to_plan)
    if as_json:
        before = developer.plan if changed else to_plan
        print_json({"id": developer.id, "email": developer.email, "plan": to_plan, "plan_before": before})
    elif not changed:
        typer.echo(f"{developer.email} is already on the {to_plan} plan.")
    else:
        typer.echo(f"Changed the plan of {developer.email} from {developer.plan} to {to_plan}.")
        if to_plan == "free":
            typer.echo("The developer's projects no longer collect phone numbers. Numbers already collected are kept.")


@command(commands, "list", *STORE)
async def list_developers(given: Given, *, as_json: AsJson = False) -> None:
    """List all developers, oldest first."""
    async with open_developers(given) as developers:
        found = await developers.list_developers()
    if as_json:
        more = ("is_owner", "messenger_id", "messenger_name")
        shown = [{**json_fields.account(each), **{name: getattr(each, name) for name in more}} for each in found]
        print_json({"developers": shown})
        return
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
    print_table(columns, rows, empty="There are no developers. Add one with: taproof developers add EMAIL")


@command(commands, "remove", *STORE)
async def remove_developer(
    given: Given,
    email: Email,
    *,
    transfer_to: Annotated[
        str | None,
        typer.Option(metavar="EMAIL", show_default=False, help="The developer who gets the projects without an owner."),
    ] = None,
    delete_projects: Annotated[
        bool, typer.Option("--delete-projects", help="Delete the projects without an owner.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a developer; their sessions, access tokens and memberships end immediately.

    Projects with another owner stay with that owner. If the developer is the only owner of others, choose whether these
    pass to another developer or are deleted. The audit logs of projects keep what the developer did there.
    """
    async with open_developers(given) as developers:
        await developers.read_developer(email)
        deleting = ", with the projects of which nobody else is an owner" if delete_projects else ""
        confirm(f"Remove {email}{deleting}? This cannot be undone.", yes=yes)
        removed = await developers.remove_developer(email, transfer_to=transfer_to, delete_projects=delete_projects)
    if as_json:
        shown = {
            name: [{"id": project_id, "name": project_name} for project_id, project_name in getattr(removed, name)]
            for name in ("transferred", "deleted", "left")
        }
        print_json({"email": email, **shown, "console_sessions": removed.console_sessions, "tokens": removed.tokens})
        return
    typer.echo(
        f"Removed {email}. Ended console sessions: {removed.console_sessions}. Revoked access tokens: {removed.tokens}."
    )
    for what, projects in (
        (f"Passed to {transfer_to}", removed.transferred),
        ("Deleted", removed.deleted),
        ("Stays with its other members", removed.left),
    ):
        for project_id, name in projects:
            typer.echo(f"{what}: {project_id} ({visible_name(name)})")
    if removed.transferred or removed.left:
        typer.echo("They may know the secrets of these projects. To replace them, see the page Rotate secrets.")
