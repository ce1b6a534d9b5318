"""Create credentials with credentials as fast as possible. Started as a program by test_reported_sign_in.py.

Each line on stdin is a JSON array: the ids of a developer's console session and access token. With these the process
creates access tokens, tokens with those in turn, console sessions and invitations, until the store refuses. Then it
writes to stdout how many it created.
"""

import asyncio
import dataclasses
import json
import sys

from taproof.core.accounts import AccessToken, Actor, Developer
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import InvalidAccessToken, InvitationNotFound, OwnerOnly, SignedOut, TooManyAccessTokens
from taproof.core.identity import MessengerIdentity
from taproof.core.rights import Grant
from taproof.runtime.store import open_storage
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.developers import Developers
from taproof.service.invitations import Invitations
from taproof.storage.protocol import Storage

CHAIN = 100


class Minter:
    """Creates everything that a stolen sign-in can create."""

    def __init__(self, storage: Storage, developer: Developer) -> None:
        self.developers = Developers(storage, system_clock, system_entropy)
        self.sessions = ConsoleSessions(storage, system_clock, system_entropy)
        self.invitations = Invitations(storage, system_clock, system_entropy)
        self.developer = developer
        self.created = 0

    async def mint(self, console: Actor, token: Actor) -> None:
        """Create until every kind is refused."""
        await asyncio.gather(self._tokens(console), self._tokens(token), self._invite(console))

    async def _tokens(self, actor: Actor) -> None:
        try:
            for _ in range(CHAIN):
                created = (await self.developers.create_access_token(actor, "minted")).token
                self.created += 1
                actor = acting(self.developer, created)
                await self.sessions.create_console_session(
                    self.developer, opened_with=created, address="198.51.100.66", user_agent=""
                )
                self.created += 1
        except (InvalidAccessToken, SignedOut, TooManyAccessTokens):
            return

    async def _invite(self, console: Actor) -> None:
        try:
            for _ in range(CHAIN):
                number = system_entropy(8).hex()
                made = await self.invitations.invite_developer(console, f"{number}@example.com", is_owner=True)
                self.created += 1
                identity = MessengerIdentity(str(int(number, 16)), "Mallory", "")
                await self.invitations.accept_invitation(made.code, identity, address="198.51.100.66")
                self.created += 1
        except (SignedOut, OwnerOnly, InvitationNotFound):
            return


def acting(developer: Developer, token: AccessToken) -> Actor:
    return Actor(developer, "access_token", token.id, grant=token.grant)


async def main() -> None:
    url, email = sys.argv[1:]
    storage = await open_storage(url)
    await storage.ping()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        session_id, token_id, sign_in = json.loads(line)
        developer = await storage.developers.read_developer(email)
        assert developer is not None
        # Like a request that was authenticated before the report and acts after it.
        grant = Grant(sign_in=sign_in)
        console = Actor(developer, "console", session_id, grant=grant)
        token = Actor(developer, "access_token", token_id, grant=dataclasses.replace(grant, access_token_id=token_id))
        minter = Minter(storage, developer)
        await minter.mint(console, token)
        print(json.dumps(minter.created), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
