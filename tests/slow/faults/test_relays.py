"""Relayed sign-ins: an attacker starts each session and polls it, and the victim confirms it on their own device.

This is the attack that the threat model measures: a false page shows a real link. The victim is the worst case: they
confirm every request, and then tap *Back*. `python -m pytest tests/slow/faults/test_relays.py
--hypothesis-profile=soak` makes 10,000 relays for each policy and database.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.conftest import Figure
from tests.databases import DRIVERS
from tests.whole_sign_in import WholeSignIn

from taproof.contract.project import SameDevice
from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import CodeVerifierMissing
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.sdk.code_challenge import code_challenge
from taproof.service.projects import Projects

PAGE: Final = "https://shop.example/sign-in"
AT_ONCE: Final = 50
HONEST_EVERY: Final = 10
"""One honest sign-in for each number of relays: the policy must not stop those."""


class Project:
    """A project with one policy, on two nodes of one database."""

    def __init__(self, nodes: list[WholeSignIn], project_id: str) -> None:
        self.nodes = nodes
        self.id = project_id
        self.codes: list[str] = []
        """The return codes of the attacker's own sign-ins, which they try on their victims' sign-ins."""

    async def begin(self, number: int) -> tuple[str, str]:
        """Start a session; return its token and verifier."""
        verifier = secrets.token_urlsafe(32)
        created = await self.nodes[number % 2].create_session(
            self.id, public=True, code_challenge=code_challenge(verifier), return_url=PAGE
        )
        return created.session_token, verifier

    async def confirm(self, number: int, token: str) -> str | None:
        """Open and confirm a session in the messenger; return the code that the browser gets by *Back*."""
        node, user = self.nodes[(number + 1) % 2], MessengerIdentity(f"{1_000 + number}", "Victim", "")
        assert (await node.open_session(token, user.messenger_id)).outcome == "opened"
        seen = await node.confirm_session(token, user)
        assert seen.outcome in {"confirmed", "returning"}
        return None if seen.return_link is None else seen.return_link.partition("=")[2]

    async def gives_proof(self, number: int, token: str, verifier: str | None, code: object) -> bool:
        verify = self.nodes[number % 2].verify_session(
            self.id, token, public=True, code_verifier=verifier, return_code=code
        )
        return (await verify).proof is not None

    async def relay(self, number: int) -> bool:
        """Relay one sign-in; return whether the attacker gets its proof."""
        token, verifier = await self.begin(number)
        code = await self.confirm(number, token)
        guesses = [None, secrets.token_urlsafe(24), *self.codes[:1]]
        stolen = [await self.gives_proof(number, token, verifier, guess) for guess in guesses]
        if code is not None:
            # The victim's browser has the code but not the verifier.
            with pytest.raises(CodeVerifierMissing):
                await self.gives_proof(number, token, None, code)
        return any(stolen)

    async def sign_in(self, number: int) -> bool:
        """Sign in honestly: the browser that has the verifier is opened by *Back*."""
        token, verifier = await self.begin(number)
        code = await self.confirm(number, token)
        self.codes = [code or "", *self.codes]
        return await self.gives_proof(number, token, verifier, code)


@contextlib.asynccontextmanager
async def open_project(driver: str, policy: SameDevice) -> AsyncIterator[Project]:
    with DRIVERS[driver](quick=True) as open_store:
        stores = [await open_store() for _ in range(2)]
        encryptor = Encryptor(new_master_key(system_entropy))
        try:
            await stores[0].sessions.prepare_days(system_clock() // 86_400_000, system_clock() // 86_400_000 + 1)
            actor = Actor(Developer("dev_1", "ada@example.com", "free", system_clock()), "command_line")
            await stores[0].developers.create_developer(actor.developer)
            projects = Projects(
                stores[0],
                encryptor,
                system_clock,
                system_entropy,
                address_rules=AddressRules(),
                webhook_ports=frozenset({443}),
                allow_loopback_http=False,
            )
            changes = ProjectChanges(name="Shop", same_device=policy, allowed_origins=("https://shop.example",))
            project, _ = await projects.create_project(actor, changes)
            nodes = [
                WholeSignIn(store, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
                for store in stores
            ]
            yield Project(nodes, project.id)
        finally:
            for store in stores:
                await store.close()


@pytest.mark.parametrize("driver", sorted(DRIVERS))
@pytest.mark.parametrize("policy", ["off", "offer", "require"])
async def test_relays(driver: str, policy: SameDevice, figure: Figure, *, soak: bool) -> None:
    """With "require", no relay gives a proof and every honest sign-in does. The other policies stop no relay."""
    relays = 10_000 if soak else 300
    async with open_project(driver, policy) as project:
        stolen = honest = 0
        for start in range(0, relays, AT_ONCE):
            own = range(relays + start, relays + start + AT_ONCE // HONEST_EVERY)
            honest += sum(await asyncio.gather(*map(project.sign_in, own)))
            stolen += sum(await asyncio.gather(*map(project.relay, range(start, start + AT_ONCE))))
    figure(f"{policy} on {driver}: proofs of relays", f"{stolen} of {relays}")
    assert honest == relays // HONEST_EVERY
    assert stolen == (0 if policy == "require" else relays)
