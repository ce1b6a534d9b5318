"""Combine both sides of a sign-in in one object, for tests that act as the application and the user."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.signals import signals

from taproof.contract.account import Plan
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.prompts import Prompts
from taproof.service.sessions.wait import Waiting
from taproof.storage.protocol import Storage

OWN_ORIGIN = "https://sign-in.example"


class WholeSignIn(SignInSessions, Decisions):
    """The actions of applications and users; `waiting` holds the calls that wait for a decision.

    `ended` is set when the application cancels a session.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        link_base: Callable[[], str],
        clock: Clock,
        entropy: Entropy,
        *,
        recorded: Callable[[], None] = lambda: None,
        find_place: Callable[[str], str] = lambda _address: "",
        require_room: Callable[[str, Plan], Awaitable[None]] | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self.storage = storage
        self.waiting = waiting or Waiting(storage, clock)
        self.ended = asyncio.Event()
        told = signals(
            decided=self.waiting.wake,
            hint_changed=self.waiting.notice,
            event_recorded=recorded,
            prompt_ended=self.ended.set,
        )
        self.prompts = Prompts(storage, clock, signals=told)
        Decisions.__init__(self, storage, encryptor, clock, entropy, signals=told)
        SignInSessions.__init__(
            self,
            storage,
            encryptor,
            lambda username: link_base() if username is None else f"https://t.me/{username}",
            clock,
            entropy,
            signals=told,
            find_place=find_place,
            own_origin=OWN_ORIGIN,
            require_room=require_room,
        )
