"""The JSON schema of the output of every command with `--json`: docs/reference/cli.schema.json.

Commands that call the developer API print its answers, so their schemas are those of the API. The models below describe
the other commands.
"""

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from taproof.api import clients, developer, members, projects, users
from taproof.api.models import DeletedAnswer, Time
from taproof.contract.account import Plan

_STATUS: Final = Path(__file__).parent / "status.schema.json"
_REF: Final = "#/$defs/{model}"

Rows = dict[str, int]


class Check(BaseModel):
    """One check of the doctor."""

    name: str
    status: Literal["ok", "warning", "problem"]
    detail: str
    advice: str = Field(description='The next step; "" if the status is ok.')


class Doctor(BaseModel):
    """The findings of the doctor."""

    ok: bool = Field(description="False if there is a problem. The exit code is then 1.")
    checks: list[Check]


class Migrated(BaseModel):
    """The schema versions before and after a migration."""

    database: str = Field(description="The file, or the address without the password.")
    from_version: int = Field(description="0: the database was created.")
    to_version: int


class Versions(BaseModel):
    """The versions for a bug report."""

    taproof: str
    python: str
    sqlite: str


class StoredToken(BaseModel):
    """The service and the developer of the access token on this machine."""

    service: str = Field(description="The address of the service.")
    email: str
    token_id: str


class LoggedIn(StoredToken):
    """The result of signing in to a service. The access token is stored, not printed."""

    expires_in_days: int


class LoggedOut(BaseModel):
    """The result of signing out of a service."""

    service: str
    revoked: bool = Field(description="False if the access token was already invalid.")


class PrintedToken(StoredToken):
    """The access token on this machine."""

    access_token: str


class ExportedUser(users.UserExportAnswer):
    """All data about a user. The last three lists are only those of all projects of a database."""

    phone_requests: users.Rows = Field(
        default_factory=list, description="Open requests for the user's phone number whose session is gone."
    )
    prompts: users.Rows = Field(
        default_factory=list, description="The messages that asked the user and whose session is gone."
    )
    blocks: users.Rows = Field(default_factory=list, description="The projects that the user blocked.")


class ErasedUser(users.ErasedAnswer):
    """The result of erasing a user. The last two fields are only those of erasing in all projects of a database."""

    erased_rows: int = 0
    developer: str | None = Field(
        default=None, description="The e-mail address of the developer who signs in with this account."
    )


class Account(BaseModel):
    """A developer's account."""

    id: str
    email: str
    created_at: Time
    plan: Plan


class AddedDeveloper(Account):
    """A new developer with an access token, which is shown only once."""

    access_token: str


class ListedDeveloper(Account):
    """A developer with the linked messenger account, if any."""

    is_owner: bool
    messenger_id: str | None
    messenger_name: str


class Developers(BaseModel):
    """All developers, oldest first."""

    developers: list[ListedDeveloper]


class InvitedDeveloper(BaseModel):
    """An invitation with its link, which is shown only once."""

    id: str
    email: str
    plan: Plan
    is_owner: bool
    developer_id: str | None = Field(description="The existing developer whom the link gives another account, if any.")
    expires_at: Time
    link: str


class ChangedPlan(BaseModel):
    """A developer's plan and the one before."""

    id: str
    email: str
    plan: Plan
    plan_before: Plan


class NamedProject(BaseModel):
    """A project by its id and name."""

    id: str
    name: str


class RemovedDeveloper(BaseModel):
    """A removed developer, with the projects that passed on and the number of ended credentials."""

    email: str
    transferred: list[NamedProject]
    deleted: list[NamedProject]
    left: list[NamedProject] = Field(description="The projects that stay with their other members.")
    console_sessions: int
    tokens: int


class Forwarded(BaseModel):
    """The answer of the application to which an event was forwarded."""

    status: int | None
    duration_ms: int
    error: str | None


class ReceivedEvent(BaseModel):
    """One received webhook. The command prints each on a line of its own."""

    time: Time
    event: str
    id: str
    again: bool = Field(description="Whether an event with this id was received before.")
    verified: bool
    x_service_signature: str
    standard_webhooks: str
    age_seconds: int | None
    answered: int = Field(description="The HTTP status of the answer.")
    error: str | None
    forwarded: Forwarded | None
    body: Any = Field(description="The event if it is verified; otherwise the beginning of the body as text.")


class SentEvent(BaseModel):
    """A test event and the receiver's answer."""

    id: str
    event: str
    delivered: bool
    status: int | None
    duration_ms: int
    error: str | None


class Exported(BaseModel):
    """The rows that were written, by table."""

    database: str
    file: str
    rows: Rows


class Imported(Exported):
    """The rows that were copied, by table."""

    under_other_keys: int = Field(description="The number of values that are encrypted under another key.")


class BackedUp(Exported):
    """The rows in the backup, by table."""

    schema_version: int
    size: int = Field(description="Bytes.")
    master_key_file: str | None


class Restored(Imported):
    """The rows that were restored, by table."""

    schema_version: int


class SigningKey(BaseModel):
    """The next key of an algorithm."""

    alg: str
    kid: str
    signs_from: Time


class RotatedKeys(BaseModel):
    """The next keys, which sign after they have been published for 24 hours."""

    keys: list[SigningKey]


class Reencrypted(BaseModel):
    """The number of values that were encrypted anew, that are left, and that cannot be decrypted."""

    resealed: int
    left: int
    unreadable: int


class RotatedMasterKey(Reencrypted):
    """The result of replacing the master key in its file."""

    key_file: str
    taken_up: bool = Field(description="Whether an interrupted rotation was continued.")


class Resealed(Reencrypted):
    """The result of encrypting under the first of several keys."""

    keys: int


OUTPUTS: Final[dict[str, type[BaseModel]]] = {
    "doctor": Doctor,
    "migrate": Migrated,
    "version": Versions,
    "login": LoggedIn,
    "logout": LoggedOut,
    "token": PrintedToken,
    "projects list": projects.ProjectListAnswer,
    "projects show": projects.ProjectAnswer,
    "projects create": projects.CreatedProjectAnswer,
    "projects update": projects.ProjectAnswer,
    "projects pause": projects.ProjectAnswer,
    "projects resume": projects.ProjectAnswer,
    "projects regenerate": projects.SecretsAnswer,
    "projects webhook-secret": projects.RotationAnswer,
    "projects rotate-webhook-secret": projects.RotationAnswer,
    "projects promote-webhook-secret": projects.RotationAnswer,
    "projects delete": DeletedAnswer,
    "sessions list": developer.SessionPageAnswer,
    "sessions show": developer.SessionAnswer,
    "users list": users.UserPageAnswer,
    "users show": developer.SessionPageAnswer,
    "users export": ExportedUser,
    "users erase": ErasedUser,
    "members list": members.MemberListAnswer,
    "members invite": members.CreatedMemberInvitationAnswer,
    "members invitations": members.MemberInvitationListAnswer,
    "members revoke-invitation": DeletedAnswer,
    "members set-role": members.MemberAnswer,
    "members remove": DeletedAnswer,
    "clients list": clients.ClientListAnswer,
    "clients show": clients.ClientAnswer,
    "clients create": clients.ClientWithSecretAnswer,
    "clients update": clients.ClientWithSecretAnswer,
    "clients regenerate": clients.ClientSecretAnswer,
    "clients grants": clients.GrantPageAnswer,
    "clients end-grant": DeletedAnswer,
    "clients delete": DeletedAnswer,
    "tokens list": developer.AccessTokenListAnswer,
    "tokens show": developer.AccessTokenAnswer,
    "tokens create": developer.CreatedAccessTokenAnswer,
    "tokens revoke": DeletedAnswer,
    "developers add": AddedDeveloper,
    "developers invite": InvitedDeveloper,
    "developers plan": ChangedPlan,
    "developers list": Developers,
    "developers remove": RemovedDeveloper,
    "audit": developer.AuditPageAnswer,
    "webhooks listen": ReceivedEvent,
    "webhooks trigger": SentEvent,
    "export": Exported,
    "import": Imported,
    "backup": BackedUp,
    "restore": Restored,
    "oidc rotate-keys": RotatedKeys,
    "master-key rotate": RotatedMasterKey,
    "master-key reseal": Resealed,
}
"""The output of each command, except for `status`, whose schema is a file."""


def cli_schema() -> str:
    """Return the schema as JSON: a definition for each command, then the definitions that these use."""
    models = dict.fromkeys(OUTPUTS.values())
    _, shared = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    outputs: dict[str, Any] = {name: {"$ref": _REF.format(model=model.__name__)} for name, model in OUTPUTS.items()}
    status = json.loads(_STATUS.read_text(encoding="utf-8"))
    shared["$defs"] |= status.pop("$defs")
    outputs["status"] = status
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of taproof COMMAND --json",
        "description": "The definition projects-list is the output of taproof projects list, and so on. Releases may "
        "add fields, but never remove one. Times are ISO 8601, in UTC.",
        "$defs": {name.replace(" ", "-"): each for name, each in outputs.items()} | _short(shared["$defs"]),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _short(schema: Any) -> Any:
    """Return a schema without the titles and examples, which repeat the names and the API reference."""
    if isinstance(schema, list):
        return [_short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = [name for name, kind in (("title", str), ("examples", list)) if isinstance(schema.get(name), kind)]
    return {name: _short(each) for name, each in schema.items() if name not in left_out}
