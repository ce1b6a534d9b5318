"""`taproof oidc`: the keys that sign ID tokens."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

from typing import Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, group, load, open_encrypted_store
from taproof.cli.developer_api import Yes, confirm
from taproof.cli.output import print_json
from taproof.core.clock import iso8601, system_clock
from taproof.core.entropy import system_entropy

_QUESTION: Final = (
    "Erase all keys that sign ID tokens, and sign with new ones at once? Applications refuse new ID tokens until they "
    "read the keys again."
)
commands: Final = group("oidc", "Manage the OpenID provider.")


@command(commands, "rotate-keys", *STORE, "master_key")
async def rotate_keys(
    given: Given,
    *,
    now: Annotated[bool, typer.Option("--now", help="Erase all keys at once, because one of them leaked.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Replace the keys that sign ID tokens, while the service runs.

    The next key of each algorithm signs as soon as it has been published for 24 hours, so that every application knows
    it. Keys also rotate by themselves every 90 days.

    With --now, all keys are erased, and new ones sign at once. Five seconds later, no node signs with an old key or
    publishes it. Applications trust the old keys until they read the keys again, and refuse new ID tokens until then.
    """
    from taproof.service.oidc.keys import SigningKeys

    async with open_encrypted_store(load(given)) as (storage, encryptor):
        keys = SigningKeys(storage, encryptor, system_clock, system_entropy)
        if now:
            confirm(_QUESTION, yes=yes)
        rotated = await (keys.replace_keys() if now else keys.rotate_keys())
    if as_json:
        shown = [{"alg": key.alg, "kid": key.kid, "signs_from": iso8601(key.signs_from)} for key in rotated]
        print_json({"keys": shown})
        return
    for key in rotated:
        typer.echo(f"{key.alg}: the key {key.kid} signs from {iso8601(key.signs_from)}.")
    if now:
        typer.echo("The previous keys are erased. In five seconds, no node uses them.")
        typer.echo("Restart your applications, or clear their caches of the keys: see the page Rotate secrets.")
    else:
        typer.echo("The previous keys stay published for 25 hours afterwards, until their last ID tokens have expired.")
