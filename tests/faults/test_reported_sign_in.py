"""Once a report is answered, nothing that the sign-in created is valid, whatever other processes do meanwhile."""

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.conftest import Figure
from tests.faults.place import Place, rows
from tests.sign_ins import stored_sign_in
from tests.whole_sign_in import WholeSignIn

from taproof.core.accounts import Actor, Developer
from taproof.core.clock import system_clock
from taproof.core.deliveries import Event
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_id
from taproof.core.identity import MessengerIdentity
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.developers import Developers
from taproof.service.invitations import Invitations
from taproof.storage.protocol import Storage

PROGRAM = Path(__file__).with_name("minting_program.py")
PROCESSES = 3
ADA = MessengerIdentity("1001", "Ada", "ada")
EMAIL = "owner@example.com"
SURVIVORS = """
SELECT (SELECT COUNT(*) FROM access_tokens WHERE id <> '{mine}'), (SELECT COUNT(*) FROM console_sessions),
  (SELECT COUNT(*) FROM invitations), (SELECT COUNT(*) FROM developers WHERE inviter_id IS NOT NULL
    AND (is_owner = 1 OR messenger_id IS NOT NULL))"""


class Victim:
    """An owner who was tricked into confirming sign-ins, and reports each one."""

    def __init__(self, signin: WholeSignIn, storage: Storage, developer: Developer) -> None:
        self.signin = signin
        self.storage = storage
        self.developer = developer
        self.developers = Developers(storage, system_clock, system_entropy)
        self.sessions = ConsoleSessions(storage, system_clock, system_entropy)

    async def robbed(self) -> tuple[str, str, str]:
        """Confirm a sign-in; return the ids of the console session and token that it created, and its own id."""
        source = await stored_sign_in(self.storage, system_clock())
        await self.storage.sessions.open_session(source.key, ADA.messenger_id, system_clock())
        session = await self.storage.sessions.read_session(source.key)
        assert session is not None
        event_id = new_id("evt", system_entropy)
        event = Event(event_id, "auth.confirmed", session.project_id, b"encrypted", system_clock())
        assert await self.storage.sessions.confirm_session(source.key, ADA, system_clock(), event, None)
        cookie = await self.sessions.create_console_session(
            self.developer, opened_with=source, address="198.51.100.66", user_agent="Mallory"
        )
        signed_in = await self.sessions.authenticate(cookie)
        assert signed_in is not None
        token = await self.developers.create_access_token(Actor(self.developer, "login"), "stolen", sign_in=source)
        self.source = source
        return signed_in.session.id, token.token.id, source.id

    async def report(self) -> None:
        seen = await self.signin.report_sign_in(self.source.key, ADA.messenger_id)
        assert (seen.outcome, seen.changed, seen.signed_out) == ("reported", True, True)


async def test_nothing_that_came_of_a_reported_sign_in_survives(place: Place, figure: Figure, *, soak: bool) -> None:
    """Three processes create tokens, sessions and invitations with stolen ones during the report: none survives.

    The test checks twice: when the report is answered, and when the other processes are refused everything.
    """
    rounds = 1_000 if soak else 12
    place = place.quick()
    created = survived = 0
    async with place.sign_in() as signin:
        storage = signin.storage
        invitations = Invitations(storage, system_clock, system_entropy)
        made = await invitations.invite_developer(None, EMAIL, is_owner=True)
        developer = await invitations.accept_invitation(made.code, ADA, address="192.0.2.1")
        victim = Victim(signin, storage, developer)
        mine = (await victim.developers.create_access_token(Actor(developer, "command_line"), "mine")).token.id
        with ExitStack() as stack:
            processes = [stack.enter_context(minting_process(place)) for _ in range(PROCESSES)]
            assert [await asyncio.to_thread(answer, each) for each in processes] == ["ready\n"] * PROCESSES
            for number in range(rounds):
                stolen = await victim.robbed()
                for process in processes:
                    assert process.stdin is not None
                    process.stdin.write(json.dumps(stolen) + "\n")
                    process.stdin.flush()
                await asyncio.sleep(number * 7 % 20 / 1000)  # So that the report arrives at a different step each time.
                await victim.report()
                at_once = await rows(place.url, SURVIVORS.format(mine=mine))
                created += sum([json.loads(await asyncio.to_thread(answer, each)) for each in processes])
                later = await rows(place.url, SURVIVORS.format(mine=mine))
                survived += sum(at_once[0]) + sum(later[0])
        assert [process.returncode for process in processes] == [0] * PROCESSES
        assert [token.id for token in await victim.developers.list_access_tokens(developer.id)] == [mine]
    figure("rounds", rounds)
    figure("credentials created", created)
    figure("survivors", survived)
    assert created > rounds  # Otherwise there was no race.
    assert survived == 0


def minting_process(place: Place) -> "subprocess.Popen[str]":
    command = [sys.executable, str(PROGRAM), place.url, EMAIL]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()
