"""`taproof oidc`: the keys that sign ID tokens."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

from typing import Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, group, load, open_encrypted_store
from taproof.cli.output import print_json
from taproof.core.clock import iso8601, system_clock
from taproof.core.entropy import system_entropy

commands: Final = group("oidc", "Manage the OpenID provider.")


@command(commands, "rotate-keys", *STORE, "master_key")
async def rotate_keys(given: Given, *, as_json: AsJson = False) -> None:
    """Replace the keys that sign ID tokens, while the service runs.

    The next key of each algorithm signs as soon as it has been published for 24 hours, so that every application knows
    it. Keys also rotate by themselves every 90 days.
    """
    from taproof.service.oidc.keys import SigningKeys

    async with open_encrypted_store(load(given)) as (storage, encryptor):
        rotated = await SigningKeys(storage, encryptor, system_clock, system_entropy).rotate_keys()
    if as_json:
        keys = [{"alg": key.alg, "kid": key.kid, "signs_from": iso8601(key.signs_from)} for key in rotated]
        print_json({"keys": keys})
        return
    for key in rotated:
        typer.echo(f"{key.alg}: the key {key.kid} signs from {iso8601(key.signs_from)}.")
    typer.echo("The previous keys stay published for 25 hours afterwards, until their last ID tokens have expired.")
